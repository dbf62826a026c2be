//! Groups of cells: fields with one value or several.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use serde::Deserialize;

use super::{ScenarioError, naming};
use crate::cell::{Cell, Deflate, Echo, Fanout, Idle, Load, Payload, Upload};

/// Approximately the number of ports from which one loopback address can connect to another.
const CONNECTIONS: RangeInclusive<u32> = 1..=25_000;
const WINDOW: RangeInclusive<u32> = 1..=65_536;
/// The payload size that every contender is asked to accept.
const PAYLOAD_BYTES: RangeInclusive<u32> = 1..=64 << 20;
const FRAMES: RangeInclusive<u32> = 1..=4_096;
const MESSAGES: RangeInclusive<u32> = 1..=1_000_000;
const TOTAL_BYTES: RangeInclusive<u64> = 1..=1 << 40;
const RATE: RangeInclusive<f64> = 1.0..=100_000_000.0;

/// A group as it is written in a scenario file.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Group {
    Echo(EchoGroup),
    Fanout(FanoutGroup),
    Idle(IdleGroup),
    Upload(UploadGroup),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct EchoGroup {
    connections: OneOrMany<u32>,
    #[serde(default = "one")]
    window: OneOrMany<u32>,
    payload_bytes: OneOrMany<u32>,
    #[serde(default)]
    payload: OneOrMany<Payload>,
    #[serde(default = "one")]
    frames: OneOrMany<u32>,
    write_bytes_max: Option<NonZeroU32>,
    #[serde(default)]
    tls: OneOrMany<bool>,
    #[serde(default)]
    deflate: OneOrMany<Deflate>,
    rate: Option<f64>,
    messages: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct FanoutGroup {
    subscribers: OneOrMany<u32>,
    payload_bytes: OneOrMany<u32>,
    window: u32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct IdleGroup {
    connections: OneOrMany<u32>,
    payload_bytes: u32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct UploadGroup {
    payload_bytes: OneOrMany<u32>,
    /// Payload in bytes that may be unacknowledged; at least one message always may.
    window_bytes: u32,
    total_bytes: u64,
}

/// One value, or a list of values.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    fn as_slice(&self) -> &[T] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

fn one() -> OneOrMany<u32> {
    OneOrMany::One(1)
}

impl<T: Default> Default for OneOrMany<T> {
    fn default() -> Self {
        Self::One(T::default())
    }
}

impl Group {
    /// Appends one cell for each combination. Fails if there are more than `max`.
    pub(super) fn expand(
        &self,
        scenario: &str,
        max: usize,
        cells: &mut Vec<Cell>,
    ) -> Result<(), ScenarioError> {
        let loads: Vec<Load> = match self {
            Self::Echo(group) => group.loads(max),
            Self::Fanout(group) => group.loads(max),
            Self::Idle(group) => group.loads(max),
            Self::Upload(group) => group.loads(max),
        };
        if loads.len() > max {
            return Err(ScenarioError::TooManyCells {
                scenario: scenario.into(),
                max: super::CELLS_MAX,
            });
        }
        for load in loads {
            check(scenario, &load)?;
            cells.push(Cell {
                scenario: scenario.into(),
                name: naming::name(&load),
                title: naming::title(&load),
                load,
            });
        }
        Ok(())
    }
}

// Each of these stops one cell past the limit, which is enough for `expand` to detect the excess.

impl EchoGroup {
    fn loads(&self, max: usize) -> Vec<Load> {
        let mut loads = Vec::new();
        for &deflate in self.deflate.as_slice() {
            for &tls in self.tls.as_slice() {
                for &frames in self.frames.as_slice() {
                    for &connections in self.connections.as_slice() {
                        for &window in self.window.as_slice() {
                            for &payload_bytes in self.payload_bytes.as_slice() {
                                for &payload in self.payload.as_slice() {
                                    if loads.len() > max {
                                        return loads;
                                    }
                                    loads.push(Load::Echo(Echo {
                                        connections,
                                        window,
                                        payload_bytes,
                                        payload,
                                        frames,
                                        write_bytes_max: self.write_bytes_max,
                                        tls,
                                        deflate,
                                        rate: self.rate,
                                        messages: self.messages,
                                    }));
                                }
                            }
                        }
                    }
                }
            }
        }
        loads
    }
}

impl FanoutGroup {
    fn loads(&self, max: usize) -> Vec<Load> {
        let subscribers = self.subscribers.as_slice().iter();
        let loads = subscribers.flat_map(|&subscribers| {
            let payloads = self.payload_bytes.as_slice().iter();
            payloads.map(move |&payload_bytes| {
                Load::Fanout(Fanout {
                    subscribers,
                    payload_bytes,
                    window: self.window,
                })
            })
        });
        loads.take(max + 1).collect()
    }
}

impl IdleGroup {
    fn loads(&self, max: usize) -> Vec<Load> {
        let connections = self.connections.as_slice().iter();
        let loads = connections.map(|&connections| {
            Load::Idle(Idle {
                connections,
                payload_bytes: self.payload_bytes,
            })
        });
        loads.take(max + 1).collect()
    }
}

impl UploadGroup {
    fn loads(&self, max: usize) -> Vec<Load> {
        let payloads = self.payload_bytes.as_slice().iter();
        let loads = payloads.map(|&payload_bytes| {
            Load::Upload(Upload {
                payload_bytes,
                window: (self.window_bytes / payload_bytes.max(1)).max(1),
                total_bytes: self.total_bytes,
            })
        });
        loads.take(max + 1).collect()
    }
}

/// Checks each number against its limits.
fn check(scenario: &str, load: &Load) -> Result<(), ScenarioError> {
    let within = |field, value: u32, range: RangeInclusive<u32>| {
        let range = f64::from(*range.start())..=f64::from(*range.end());
        within(scenario, field, f64::from(value), range)
    };
    match load {
        Load::Echo(echo) => {
            within("connections", echo.connections, CONNECTIONS)?;
            within("window", echo.window, WINDOW)?;
            within("payload-bytes", echo.payload_bytes, PAYLOAD_BYTES)?;
            within("frames", echo.frames, FRAMES)?;
            // Frames without payload would be legal, but the cell would measure something else.
            within("frames", echo.frames, 1..=echo.payload_bytes)?;
            within("messages", echo.messages.unwrap_or(1), MESSAGES)?;
            self::within(scenario, "rate", echo.rate.unwrap_or(1.0), RATE)
        }
        Load::Fanout(fanout) => {
            within("subscribers", fanout.subscribers, CONNECTIONS)?;
            within("window", fanout.window, WINDOW)?;
            within("payload-bytes", fanout.payload_bytes, PAYLOAD_BYTES)
        }
        Load::Idle(idle) => {
            within("connections", idle.connections, CONNECTIONS)?;
            within("payload-bytes", idle.payload_bytes, PAYLOAD_BYTES)
        }
        Load::Upload(upload) => {
            within("payload-bytes", upload.payload_bytes, PAYLOAD_BYTES)?;
            within("window-bytes", upload.window, WINDOW)?;
            let range = *TOTAL_BYTES.start() as f64..=*TOTAL_BYTES.end() as f64;
            self::within(scenario, "total-bytes", upload.total_bytes as f64, range)
        }
    }
}

fn within(
    scenario: &str,
    field: &'static str,
    value: f64,
    range: RangeInclusive<f64>,
) -> Result<(), ScenarioError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(ScenarioError::OutOfRange {
        scenario: scenario.into(),
        field,
        value,
        min: *range.start(),
        max: *range.end(),
    })
}
