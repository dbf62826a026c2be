//! The provider that a program installs is used. This is a program of its own, because a process
//! has one provider.
#![cfg(feature = "ring")]

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};

#[test]
fn the_installed_provider_replaces_the_bundled_one() {
    let mut installed = ring::default_provider();
    installed.cipher_suites.truncate(1);
    let suite = installed.cipher_suites[0].suite();
    installed
        .install_default()
        .expect("no other provider is installed");

    let provider = linerate_tls::provider();

    let suites: Vec<_> = provider
        .cipher_suites
        .iter()
        .map(|suite| suite.suite())
        .collect();
    assert_eq!(suites, [suite]);
    let default = CryptoProvider::get_default().expect("it was installed");
    assert!(
        !Arc::ptr_eq(&provider, default),
        "the suites are strict ones"
    );
}
