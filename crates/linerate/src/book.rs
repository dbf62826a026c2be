//! The code in the README and in the pages about the library, which is compiled as documentation
//! tests.

#[doc = include_str!("../../../README.md")]
struct Readme;

#[doc = include_str!("../../../docs/library/tour.md")]
struct Tour;

#[doc = include_str!("../../../docs/library/from-fastwebsockets.md")]
struct FromFastwebsockets;

#[doc = include_str!("../../../docs/library/from-tokio-tungstenite.md")]
struct FromTokioTungstenite;

// It also has code of the reactor, which exists only on Linux.
#[cfg(target_os = "linux")]
#[doc = include_str!("../../../docs/library/from-uwebsockets.md")]
struct FromUWebSockets;
