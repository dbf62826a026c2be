//! `/echo`: echoes each message.

use linerate::{Receiver, Result, Sender};

use super::endpoint::{Endpoint, Farewell};

#[derive(Debug)]
pub(super) struct Echo;

impl Endpoint for Echo {
    async fn talk(self, sender: &Sender, receiver: &mut Receiver) -> Result<Farewell> {
        while let Some(message) = receiver.recv().await? {
            sender.send(message).await?;
        }
        Ok(Farewell::DONE)
    }
}
