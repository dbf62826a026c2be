//! Resolving host names to addresses.

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
};

use linerate_proto::url::Host;

use super::DialError;

/// Resolves host names to addresses.
pub trait Resolve: Send + Sync {
    /// Returns the addresses of `host`, each with `port`, in order of preference. `host` is always
    /// a name, never an IP address.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> ResolveFuture<'a>;
}

/// The future that [`Resolve::resolve`] returns.
pub type ResolveFuture<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Resolves names as the operating system does, which also orders the addresses (RFC 6724).
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a unit struct is its own constructor"
)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> ResolveFuture<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// Returns the addresses of a host; an empty list is an error.
pub(super) async fn resolve(
    resolver: &dyn Resolve,
    host: &Host,
    port: u16,
) -> Result<Vec<SocketAddr>, DialError> {
    let address: IpAddr = match host {
        Host::Name(name) => {
            let resolved = resolver.resolve(name, port).await;
            let failed = |error| DialError::ResolveFailed {
                host: name.clone(),
                error,
            };
            let addresses = resolved.map_err(failed)?;
            if addresses.is_empty() {
                let error = io::Error::new(io::ErrorKind::NotFound, "no addresses found");
                return Err(failed(error));
            }
            return Ok(addresses);
        }
        Host::Ipv4(address) => (*address).into(),
        Host::Ipv6(address) => (*address).into(),
    };
    Ok(vec![SocketAddr::new(address, port)])
}
