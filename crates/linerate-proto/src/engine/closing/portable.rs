//! Exports and imports how far the closing handshake is.

use super::{Closed, Closing, Direction};
use crate::{
    close_code::CloseCode,
    portable::{ImportError, Reader, Writer, check, invalid},
};

impl Closing {
    pub(in crate::engine) fn export(&self, state: &mut Writer) {
        state.u8(self.input.number());
        state.u8(self.output.number());
        state.u16(self.peer_code);
    }

    pub(in crate::engine) fn import(state: &mut Reader<'_>) -> Result<Self, ImportError> {
        let input = Direction::import(state, "state of the input")?;
        let output = Direction::import(state, "state of the output")?;
        let peer_code = state.u16("close code")?;
        let is_code = peer_code == Closed::NO_STATUS || CloseCode::new(peer_code).is_some();
        let is_possible = match input {
            Direction::Answered => return Err(invalid("state of the input", input.number())),
            Direction::Closed => is_code,
            Direction::Failed => is_code || peer_code == 0,
            Direction::Open => peer_code == 0,
        };
        check(is_possible, "close code", peer_code)?;
        // A Close frame is answered at once, and so is an error.
        let is_answer = matches!(output, Direction::Answered);
        let is_possible = match input {
            Direction::Open => !is_answer && output != Direction::Failed,
            _ => output != Direction::Open && (!is_answer || peer_code != 0),
        };
        check(is_possible, "state of the output", output.number())?;
        Ok(Self {
            input,
            output,
            peer_code,
        })
    }
}

impl Direction {
    const fn number(self) -> u8 {
        match self {
            Self::Open => 0,
            Self::Closed => 1,
            Self::Answered => 2,
            Self::Failed => 3,
        }
    }

    fn import(state: &mut Reader<'_>, field: &'static str) -> Result<Self, ImportError> {
        Ok(match state.u8(field)? {
            0 => Self::Open,
            1 => Self::Closed,
            2 => Self::Answered,
            3 => Self::Failed,
            other => return Err(invalid(field, other)),
        })
    }
}
