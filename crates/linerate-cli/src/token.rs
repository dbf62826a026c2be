//! `linerate token`: creates a token for testing.

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use clap::Args;
use linerate_gateway::TokenMaker;

use crate::serve::loader_of_environment;

/// Maximum validity of a token: ten years.
const SECONDS_MAX: u64 = 10 * 365 * 24 * 3_600;

const EXAMPLES: &str = "\
Examples:
  linerate token --config linerate.toml --user ann
  linerate token --config linerate.toml --user ann --channel news:private --expire-in 1h
  LINERATE_AUTH_TOKEN_HMAC_SECRET_KEY=0123456789abcdef linerate token --user ann";

/// Creates a token for a connection or a channel, signed with `auth.token.hmac_secret_key`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Configuration file with the secret key [default: the file named by LINERATE_CONFIG, or
    /// none].
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The user that the token is for; empty for an anonymous user.
    #[arg(long, value_name = "USER")]
    user: String,

    /// Create a token for this channel instead of one for a connection.
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,

    /// Information about the user that other clients can see, as JSON.
    #[arg(long, value_name = "JSON", value_parser = json)]
    info: Option<serde_json::Value>,

    /// How long the token is valid, for example 30s, 15m, 12h or 7d.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = time)]
    expire_in: Duration,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let config = loader_of_environment(arguments.config).load()?;
    let maker = TokenMaker::new(&config.auth.token).context("cannot create a token")?;
    let channel = arguments.channel.as_deref();
    let expire_in = Some(arguments.expire_in);
    println!(
        "{}",
        maker.make(&arguments.user, channel, arguments.info, expire_in)
    );
    Ok(())
}

fn json(text: &str) -> Result<serde_json::Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn time(text: &str) -> Result<Duration, String> {
    let explain = || "expected a number followed by s, m, h or d, such as 15m".to_owned();
    let (number, unit) = text
        .split_at_checked(text.len().saturating_sub(1))
        .ok_or_else(explain)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 24 * 3_600,
        _ => return Err(explain()),
    };
    let number: u64 = number.parse().map_err(|_| explain())?;
    match number.checked_mul(seconds) {
        Some(seconds @ 1..=SECONDS_MAX) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("must be between 1 and {SECONDS_MAX} seconds")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::time;

    #[test]
    fn times_have_units_and_bounds() {
        assert_eq!(time("1h"), Ok(Duration::from_secs(3_600)));
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        for wrong in [
            "",
            "h",
            "1",
            "1.5h",
            "-1h",
            "0s",
            "99999999999d",
            "1ü",
            "1 h",
        ] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
