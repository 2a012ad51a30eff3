use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::raw::{Comm, Message};

const TAG: i32 = 1;

/// Control messages between rank 0 and the others: JSON on a communicator of their own. Never blocks: a rank that is
/// gone takes nothing, and rank 0 must not wait for it.
#[derive(Debug)]
pub(super) struct Control<Out, In> {
    comm: Comm,
    outbox: Vec<Message>,
    inbox: Vec<Message>,
    kinds: PhantomData<(Out, In)>,
}

impl<Out: Serialize, In: DeserializeOwned> Control<Out, In> {
    pub(super) fn new(comm: Comm) -> Self {
        Self { comm, outbox: Vec::new(), inbox: Vec::new(), kinds: PhantomData }
    }

    /// Send a message, sooner or later.
    pub(super) fn send(&mut self, to: usize, message: &Out) -> Result<(), String> {
        let bytes = serde_json::to_vec(message).map_err(|error| format!("control message: {error}"))?;
        self.outbox.push(Message::send(&self.comm, bytes, to, TAG));
        self.flush();
        Ok(())
    }

    /// True when everything sent is out of our hands.
    pub(super) fn flush(&mut self) -> bool {
        self.outbox.retain_mut(|message| !message.done());
        self.outbox.is_empty()
    }

    /// The messages that have come in.
    pub(super) fn receive(&mut self) -> Vec<In> {
        self.flush();
        while let Some((from, length)) = self.comm.probe(TAG) {
            self.inbox.push(Message::receive(&self.comm, length, from, TAG));
        }
        let mut arrived = Vec::new();
        // In order: a later message of the same rank never overtakes an earlier one.
        while self.inbox.first_mut().is_some_and(Message::done) {
            let message = self.inbox.remove(0);
            if let Ok(message) = serde_json::from_slice(message.bytes()) {
                arrived.push(message);
            }
        }
        arrived
    }
}
