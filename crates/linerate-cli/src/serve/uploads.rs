//! `/logs/upload`: connects the service for access logs with the gateway.

use std::{net::IpAddr, ops::RangeInclusive};

use linerate::{Receiver, Result, Sender};
use linerate_gateway::{Access, KeyRefusal, LogsAccess, config::Section};
use linerate_uploads::{Admission, LogsOptions, Service};
use serde::Deserialize;

use super::endpoint::{CloseMessage, Endpoint};

/// `[logs]` in the configuration.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(transparent)]
pub(super) struct LogsSection(pub(super) LogsOptions);

impl Section for LogsSection {
    const NAME: &'static str = "logs";
    const DEFAULT_TOML: &'static str = linerate_uploads::DEFAULT_TOML;

    fn ranges(&self) -> Vec<(&'static str, u64, RangeInclusive<u64>)> {
        self.0.ranges()
    }
}

/// Admits clients as the current configuration of the gateway says.
#[derive(Debug)]
pub(super) struct Keys(pub(super) Access);

impl linerate_uploads::Access for Keys {
    fn admission(&self) -> Admission {
        match self.0.logs() {
            LogsAccess::Closed => Admission::Closed,
            LogsAccess::Key => Admission::Key,
            LogsAccess::Open => Admission::Open,
        }
    }

    fn check_key(
        &self,
        key: &[u8],
        address: IpAddr,
    ) -> std::result::Result<(), linerate_uploads::KeyRefusal> {
        let judged = self.0.judge_logs_key(key, address);
        judged.map_err(|refusal| match refusal {
            KeyRefusal::Limited(wait) => linerate_uploads::KeyRefusal::Limited(wait),
            _ => linerate_uploads::KeyRefusal::Wrong,
        })
    }
}

/// One upload connection.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) service: Service,
    pub(super) address: IpAddr,
}

impl Endpoint for Upload {
    async fn talk(self, sender: &Sender, receiver: &mut Receiver) -> Result<CloseMessage> {
        let served = self.service.serve(self.address, sender, receiver).await?;
        Ok(CloseMessage {
            code: served.code,
            reason: served.reason,
        })
    }
}
