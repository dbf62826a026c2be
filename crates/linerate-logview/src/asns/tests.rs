use std::path::Path;

use super::Asns;

/// Returns the database made by `tests/make_databases.py`.
pub(crate) fn database() -> &'static Path {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/asns.mmdb").as_ref()
}

#[test]
fn addresses_have_the_system_and_the_network_of_the_database() {
    let asns = Asns::open(database()).unwrap();
    let of = |address: &str| {
        let address = address.parse().unwrap();
        let asn = asns.of(address)?;
        let network = asns.network_of(address)?.to_string();
        Some((asn.number, asn.name, network))
    };
    let asn = |number, name: &str, network: &str| Some((number, name.into(), network.into()));
    assert_eq!(of("192.0.2.7"), asn(64_496, "Example", "192.0.2.0/24"));
    assert_eq!(
        of("::ffff:192.0.2.7"),
        asn(64_496, "Example", "192.0.2.0/24")
    );
    assert_eq!(
        of("2001:db8::1"),
        asn(64_500, "Ünïted “Net”; {", "2001:db8::/32")
    );
    for address in ["192.0.3.0", "10.0.0.1", "::1", "2001:db9::"] {
        assert_eq!(of(address), None, "{address}");
    }
    assert!(format!("{asns:?}").contains("Test-ASN"));
}

#[test]
fn damaged_databases_never_panic() {
    let whole = std::fs::read(database()).unwrap();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x5A;
        for bytes in [&changed[..], &whole[..at], &whole[at..]] {
            if let Ok(reader) = maxminddb::Reader::from_source(bytes.to_vec()) {
                let asns = Asns(reader.into());
                for address in ["192.0.2.1", "198.51.100.200", "2001:db8::1", "::"] {
                    let address = address.parse().unwrap();
                    asns.of(address);
                    if let Some(network) = asns.network_of(address) {
                        assert!(network.contains(&address));
                    }
                }
            }
        }
    }
}
