//! A server that sends what it likes: replies of a real one with bytes changed. The client gives
//! errors, never a panic, and never waits for what can't come.

use porpoise_client::{Connection, Options};
use porpoise_transport::Stream;
use proptest::prelude::*;
use std::io::{self, Read, Write};
use std::time::Duration;

/// Bytes that were received once, and a sink.
#[derive(Debug)]
struct Replay {
    bytes: Vec<u8>,
    at: usize,
}

impl Read for Replay {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = into.len().min(self.bytes.len() - self.at).min(97);
        into[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

impl Write for Replay {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Replay {
    fn set_read_timeout(&self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn set_write_timeout(&self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn is_private(&self) -> bool {
        true
    }

    fn is_local(&self) -> bool {
        true
    }

    fn kind(&self) -> &'static str {
        "replay"
    }

    fn shutdown(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Does what the conversation of this name did, as far as the replies let it.
fn converse(name: &str, bytes: Vec<u8>) -> Result<usize, porpoise_client::Error> {
    let options = Options {
        user: "root".into(),
        database: Some("sbtest".into()),
        multi_statements: true,
        max_allowed_packet: 1 << 16,
        ..Options::default()
    };
    let mut connection = Connection::over(Box::new(Replay { bytes, at: 0 }), &options)?;
    let mut rows = 0;
    if name == "prepared" {
        let statement = connection.prepare("SELECT ?, ?, ?, ?, ?, ?, ?")?;
        let values = vec![1.into(); statement.parameters()];
        for _ in 0..2 {
            let collected = connection.execute(&statement, &values)?.rows()?;
            rows += collected.to_text().len();
        }
        connection.reset_statement(&statement)?;
        connection.ping()?;
        return Ok(rows);
    }
    let mut results = connection.query("SELECT 1")?;
    loop {
        while let Some(row) = results.next_row()? {
            row.values().for_each(drop);
            rows += 1;
        }
        results.columns().names().for_each(drop);
        results.outcome().state_changes().for_each(drop);
        if !results.next_result()? {
            return Ok(rows);
        }
    }
}

const CONVERSATIONS: [(&str, &[u8]); 4] = [
    (
        "query",
        include_bytes!("../../porpoise-protocol/fuzz/corpus/to_client/query"),
    ),
    (
        "prepared",
        include_bytes!("../../porpoise-protocol/fuzz/corpus/to_client/prepared"),
    ),
    (
        "several_results",
        include_bytes!("../../porpoise-protocol/fuzz/corpus/to_client/several_results"),
    ),
    (
        "wrong_password",
        include_bytes!("../../porpoise-protocol/fuzz/corpus/to_client/wrong_password"),
    ),
];

#[test]
fn the_conversations_replay() {
    let [query, prepared, several, wrong] =
        CONVERSATIONS.map(|(name, bytes)| converse(name, bytes.to_vec()));
    assert_eq!(query.unwrap(), 1);
    assert_eq!(prepared.unwrap(), 2);
    assert_eq!(several.unwrap_err().number(), Some(1064));
    assert_eq!(wrong.unwrap_err().number(), Some(1045));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn a_changed_conversation_never_panics(
        pick in 0..CONVERSATIONS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..6),
    ) {
        let (name, bytes) = CONVERSATIONS[pick];
        let mut bytes = bytes.to_vec();
        for (at, byte, change) in changes {
            let at = at.index(bytes.len());
            match change {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        let _ = converse(name, bytes);
    }
}
