//! Starting a gateway.

use linerate_gateway::Gateway;
use tokio::runtime::Runtime;

use crate::support::config;

#[test]
fn a_gateway_starts_outside_of_the_runtime_that_it_was_bound_in() {
    let runtime = Runtime::new().unwrap();
    let loopback = ([127, 0, 0, 1], 0).into();
    let mut config = config("");
    config.server.listen = loopback;
    config.server.operations_listen = Some(loopback);
    config.server.workers = 1;
    let gateway = runtime.block_on(async { Gateway::bind(config) }).unwrap();
    let running = gateway.start().unwrap();
    runtime.block_on(running.shut_down()).unwrap();
}
