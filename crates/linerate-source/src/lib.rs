//! What sources of publications have in common. A source reads from another system, such as a
//! database, and publishes what it reads without a request of the application.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `attempts` | the attempts to read, and the pauses between them |
//! | `publish` | publishes records, each of them once |
//! | `record` | a record that is ready to be published, and its position in the source |
//! | `sink` | the broker of a node, as sources use it |
//! | `status` | what a source has done, for metrics |
//! | `template` | templates of channel names |
#![forbid(unsafe_code)]

mod attempts;
mod publish;
mod record;
mod sink;
mod status;
mod template;

pub use attempts::{Attempts, Trouble};
pub use publish::{Publisher, insist};
pub use record::{Position, Record};
pub use sink::Sink;
pub use status::{SourceState, Status};
pub use template::{Template, TemplateError};
