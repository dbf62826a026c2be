//! `linerate token`: makes a token to try things out with.

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use clap::Args;
use linerate_gateway::auth::TokenMaker;

use crate::serve::loader_of_environment;

/// The longest time that a token may be valid for.
const SECONDS_MAX: u64 = 10 * 365 * 24 * 3_600;

const EXAMPLES: &str = "\
Examples:
  linerate token --config linerate.toml --user ann
  linerate token --config linerate.toml --user ann --channel news:private --expire-in 1h
  LINERATE_AUTH_TOKEN_HMAC_SECRET_KEY=0123456789abcdef linerate token --user ann";

/// Makes a token, signed with `auth.token.hmac_secret_key`, for a connection or for a channel.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The TOML file with the secret [default: what LINERATE_CONFIG names, or none].
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Whose token it is; empty for anonymous.
    #[arg(long, value_name = "USER")]
    user: String,

    /// The channel that it is for, if it is not for a connection.
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,

    /// What others are told of the user, as JSON.
    #[arg(long, value_name = "JSON", value_parser = json)]
    info: Option<serde_json::Value>,

    /// How long it is valid, as 30s, 15m, 12h or 7d.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = time)]
    expire_in: Duration,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let config = loader_of_environment(arguments.config).load()?;
    let maker = TokenMaker::new(&config.auth.token).context("can't make a token")?;
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
    let explain = || "must be a number with s, m, h or d, as 15m".to_owned();
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
        _ => Err(format!("must be one second to {SECONDS_MAX} seconds")),
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
