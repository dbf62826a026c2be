//! Any bytes as the state of a connection, and connections that move while any input arrives.
#![no_main]

use core::time::Duration;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use linerate_proto::{
    Config, Engine, Role,
    deflate::{Agreement, Context, Deflate, ThreadPool},
    engine::{Importer, RawEvent},
    portable::Version,
};
use linerate_testkit::{Cuts, Record, TestEndpoint, feed, feed_on};

const MESSAGE_BYTES_MAX: u64 = 70_000;
const NOW: Duration = Duration::from_secs(100);

// The first byte chooses the role and the window, the second whether the bytes that follow are a
// state, the input of a connection that moves, or such an input and a change of the state; the next
// two choose where it moves, or how long the state is.
fuzz_target!(|data: &[u8]| {
    let [choice, mode, high, low, content @ ..] = data else {
        return;
    };
    let setup = Setup::new(*choice);
    let at = usize::from(u16::from_be_bytes([*high, *low])).min(content.len());
    match mode % 3 {
        0 => setup.import(&content[..at], &content[at..]),
        1 => setup.move_at(at, content),
        _ => setup.change(at, *mode, content),
    }
});

struct Setup {
    role: TestEndpoint,
    compression: Option<Context>,
    config: Arc<Config>,
    options: Deflate,
    importer: Importer,
}

impl Setup {
    fn new(choice: u8) -> Self {
        let mut config = Config::default();
        config.limits.message_bytes_max = MESSAGE_BYTES_MAX;
        let config = Arc::new(config);
        let mut options = Deflate::default();
        options.exportable = true;
        let role = if choice & 1 == 0 {
            Role::Server
        } else {
            Role::Client
        };
        // Inside a message, a peer can refer back further than agreed. After a move it cannot.
        let context = match choice & 2 {
            0 => Context {
                window_bits: 8 + (choice >> 3) % 8,
                takeover: false,
            },
            _ => Context {
                window_bits: 15,
                takeover: true,
            },
        };
        Self {
            role: TestEndpoint(role),
            compression: (choice & 4 != 0).then_some(context),
            importer: Importer::new(Arc::clone(&config)).with_deflate(&options, &ThreadPool),
            config,
            options,
        }
    }

    fn engine(&self) -> Engine<TestEndpoint> {
        let engine = Engine::new(self.role, Arc::clone(&self.config), NOW);
        match self.compression {
            None => engine,
            Some(context) => {
                let agreement = Agreement {
                    sending: context,
                    receiving: context,
                };
                engine.with_deflate(agreement, &self.options, &ThreadPool)
            }
        }
    }

    /// Imports bytes that may be a state, and feeds an input.
    fn import(&self, state: &[u8], input: &[u8]) {
        let Ok(mut engine) = self.importer.import(self.role, state, NOW) else {
            return;
        };
        // What was imported can be moved again, and is then the same.
        let exported = engine
            .export(Version::NEWEST, NOW)
            .expect("it is exportable");
        let mut again = self
            .importer
            .import(self.role, &exported, NOW)
            .expect("it was exported");
        assert!(again.export(Version::NEWEST, NOW).as_ref() == Ok(&exported));
        let mut input = input.to_vec();
        let (mut at, mut bytes, mut out) = (0, 0, Vec::new());
        loop {
            let mut events = again.handle_input(&mut input[at..], NOW);
            match events.next_raw() {
                Some(Ok(RawEvent::Data(data))) => bytes += data.len() as u64,
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break,
            }
            at += events.consumed();
            again.poll_transmit(&mut out);
        }
        // Each byte of the input inflates to at most 1,032 bytes, and an export finds up to 2 KiB.
        assert!(bytes <= 1_100 * input.len() as u64 + 4_096);
        _ = again.send_binary(
            &mut out,
            b"some bytes to send, and more of them to compress them",
        );
        _ = again.handle_timeout(2 * NOW);
        again.handle_eof();
    }

    /// Feeds an input in two pieces to a connection that moves after the first and between events,
    /// and to one that does not.
    fn move_at(&self, at: usize, wire: &[u8]) {
        let (moving, staying) = (self.read(at, wire, true), self.read(at, wire, false));
        assert!(moving == staying);
        if let Some((_, bytes)) = &moving.unfinished {
            assert!(bytes.len() as u64 <= MESSAGE_BYTES_MAX);
        }
    }

    fn read(&self, at: usize, wire: &[u8], moves: bool) -> Record {
        let mut engine = self.engine();
        let mut record = feed_on(Record::default(), &mut engine, &wire[..at], Cuts::Whole);
        let mut input = wire[at..].to_vec();
        let mut at = 0;
        loop {
            if moves {
                engine = self.moved(&mut engine);
            }
            let mut events = engine.handle_input(&mut input[at..], NOW);
            let Some(event) = events.next() else {
                return record;
            };
            record.add(event);
            at += events.consumed();
            engine.poll_transmit(&mut record.output);
        }
    }

    fn moved(&self, engine: &mut Engine<TestEndpoint>) -> Engine<TestEndpoint> {
        let state = engine
            .export(Version::NEWEST, NOW)
            .expect("it is exportable");
        let imported = self.importer.import(self.role, &state, NOW);
        imported.expect("it was just exported")
    }

    /// Changes a byte of a state.
    fn change(&self, at: usize, mode: u8, wire: &[u8]) {
        let mut engine = self.engine();
        feed(&mut engine, &wire[..at], Cuts::Whole);
        let mut state = engine
            .export(Version::NEWEST, NOW)
            .expect("it is exportable");
        let changed = usize::from(mode) * state.len() / 256;
        state[changed] ^= wire.last().copied().unwrap_or(1);
        self.import(&state, &wire[at..]);
    }
}
