use std::path::Path;

use super::{Countries, CountriesError};

/// Returns the database made by `tests/make_databases.py`.
pub(crate) fn database() -> &'static Path {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/countries.mmdb").as_ref()
}

#[test]
fn addresses_have_the_country_of_their_network() {
    let countries = Countries::open(database()).unwrap();
    let of = |address: &str| {
        countries
            .of(address.as_bytes())
            .map(|it| (it.code, it.name))
    };
    let country = |code: &str, name: &str| Some((code.to_owned(), name.to_owned()));
    assert_eq!(of("192.0.2.0"), country("DE", "Germany"));
    assert_eq!(of("::ffff:192.0.2.255"), country("DE", "Germany"));
    assert_eq!(of("198.51.100.127"), country("FR", "France"));
    assert_eq!(of("198.51.100.128"), country("CI", "Côte d’Ivoire"));
    assert_eq!(of("2001:db8::7"), country("JP", "Japan"));
    for address in [
        "",
        "-",
        "192.0.3.0",
        "10.0.0.1",
        "::1",
        "2001:db9::",
        "a.example",
        "192.0.2",
    ] {
        assert_eq!(of(address), None, "{address}");
    }
    assert_eq!(countries.of(b"\xFF"), None);
    assert!(format!("{countries:?}").contains("Test-Country"));
}

#[test]
fn missing_or_invalid_database_files_are_reported() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let missing = Countries::open(format!("{folder}/none.mmdb").as_ref()).unwrap_err();
    assert!(matches!(missing, CountriesError::Unreadable { .. }));
    assert!(missing.to_string().ends_with("none.mmdb"));
    let folder = Countries::open(folder.as_ref()).unwrap_err();
    assert!(matches!(folder, CountriesError::Unreadable { .. }));
    let other = Countries::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").as_ref());
    let other = other.unwrap_err();
    assert!(matches!(other, CountriesError::NoDatabase { .. }));
    assert!(
        other
            .to_string()
            .contains("Cargo.toml: not a MaxMind database"),
        "{other}"
    );
}

#[test]
fn damaged_databases_never_panic() {
    let whole = std::fs::read(database()).unwrap();
    let open = |bytes: &[u8]| maxminddb::Reader::from_source(bytes.to_vec());
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x5A;
        for bytes in [&changed[..], &whole[..at], &whole[at..]] {
            if let Ok(reader) = open(bytes) {
                let countries = Countries(reader.into());
                for address in ["192.0.2.1", "198.51.100.200", "2001:db8::1", "::"] {
                    let country = countries.of(address.as_bytes());
                    assert!(country.is_none_or(|it| it.code.len() == 2));
                }
            }
        }
    }
}
