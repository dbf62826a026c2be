//! The table of a worker's connections.

use std::{
    io,
    ops::{Index, IndexMut},
};

use linerate_proto::Role;

use crate::{
    connection::{Connection, Stage, id::Slot},
    core::Core,
    driver::event::{Interest, Source},
    memory::table::Table,
    platform::Socket,
};

/// The largest serial number of a connection. It keeps the connection's token below those of the
/// listener and the mailbox.
const SERIAL_MAX: u32 = (1 << 28) - 1;

/// The connections of a worker. The key of a connection is its place in the table; serial numbers
/// distinguish connections that have had the same place.
pub(crate) struct Connections {
    table: Table<Connection>,
    next_serial: u32,
}

impl Connections {
    pub(super) const fn new() -> Self {
        Self {
            table: Table::new(),
            next_serial: 0,
        }
    }

    /// Adds a connection, whose socket the driver watches from now on; returns its key.
    ///
    /// # Errors
    /// If the driver cannot add the socket. The error contains the stage that was passed in.
    pub(super) fn add(
        &mut self,
        core: &mut Core,
        socket: Socket,
        stage: Stage,
        role: Role,
        interest: Interest,
    ) -> Result<usize, (Stage, io::Error)> {
        let slot = Slot {
            index: self.table.next_index() as u32,
            serial: self.next_serial,
        };
        self.next_serial = (self.next_serial + 1) & SERIAL_MAX;
        let driver = &mut core.io.driver;
        let watch = match driver.add(Source::Socket, &socket, slot.token(), interest) {
            Ok(watch) => watch,
            Err(error) => return Err((stage, error)),
        };
        let connection = Connection::new(socket, slot, stage, core.engine(role), watch);
        Ok(self.table.insert(connection))
    }

    /// Removes and returns a connection, if it still exists. Its deadlines no longer apply.
    pub(super) fn remove(&mut self, core: &mut Core, key: usize) -> Option<Connection> {
        let mut connection = self.table.remove(key)?;
        core.deadlines.cancel(&mut connection);
        Some(connection)
    }

    /// Returns the connection with this key, if it still exists.
    pub(super) fn get_mut(&mut self, key: usize) -> Option<&mut Connection> {
        self.table.get_mut(key)
    }

    /// Returns the key of the connection with this token, if it still exists.
    #[inline]
    pub(crate) fn find(&self, token: u64) -> Option<usize> {
        let key = token as u32 as usize;
        let connection = self.table.get(key)?;
        (u64::from(connection.slot.serial) == token >> 32).then_some(key)
    }

    /// Returns the keys of all connections.
    pub(super) fn keys(&self) -> Vec<usize> {
        self.table.indices().collect()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

impl Index<usize> for Connections {
    type Output = Connection;

    #[inline]
    fn index(&self, key: usize) -> &Connection {
        &self.table[key]
    }
}

impl IndexMut<usize> for Connections {
    #[inline]
    fn index_mut(&mut self, key: usize) -> &mut Connection {
        &mut self.table[key]
    }
}
