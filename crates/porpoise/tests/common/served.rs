//! A database that this process serves, for clients that come from outside.

use std::net::SocketAddr;
use std::path::PathBuf;

use porpoise::{Database, Listen, Listening};

/// The ways in: their names, and the URL's parameters for them.
pub const WAYS: [(&str, &str); 4] = [
    ("shared memory", "transport=shm"),
    ("Unix socket", "transport=unix"),
    ("TCP", "transport=tcp"),
    ("loopback fast path", "transport=tcp&loopback_fast_path"),
];

/// In memory; with a Unix socket, shared memory beside it, and TCP.
pub struct Served {
    pub database: Database,
    pub listening: Listening,
    pub address: SocketAddr,
    pub socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Served {
    /// Has an account per plugin for passwords: ann, who may do everything, and eve. TCP is at
    /// `address`, with the loopback fast path or without.
    pub fn start(address: &str, fast_path: bool) -> Served {
        let setup = [
            "CREATE USER ann IDENTIFIED WITH mysql_native_password BY 'secret'",
            "CREATE USER eve IDENTIFIED WITH caching_sha2_password BY 'whispered'",
            "GRANT ALL ON *.* TO ann",
        ];
        Served::after(&setup, address, fast_path)
    }

    /// Has an account without a password, which may do everything in a schema.
    pub fn with_schema(account: &str, schema: &str) -> Served {
        let setup = [
            &*format!("CREATE DATABASE {schema}"),
            &*format!("CREATE USER {account}"),
            &*format!("GRANT ALL ON {schema}.* TO {account}"),
        ];
        Served::after(&setup, "127.0.0.1:0", true)
    }

    fn after(setup: &[&str], address: &str, fast_path: bool) -> Served {
        let database = Database::options()
            .set("loopback_fast_path", fast_path)
            .in_memory()
            .unwrap();
        let connection = database.connect().unwrap();
        for sql in setup {
            connection.execute(sql, ()).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let listen = Listen::unix(&socket)
            .and(Listen::shared_memory(folder.path().join("s.MYSQL")))
            .and(Listen::tcp(address.parse().unwrap()));
        let listening = database.listen(listen).unwrap();
        let address = listening.tcp_addresses()[0];
        Served {
            database,
            listening,
            address,
            socket,
            _folder: folder,
        }
    }

    /// For an account and its password, with the URL's parameters: `transport=unix`.
    pub fn url(&self, account: &str, parameters: &str) -> String {
        self.url_of_schema(account, "", parameters)
    }

    /// The same, with a schema to begin in.
    pub fn url_of_schema(&self, account: &str, schema: &str, parameters: &str) -> String {
        let (address, socket) = (self.address, self.socket.display());
        format!("mysql://{account}@{address}/{schema}?{parameters}&socket={socket}")
    }

    /// Clients that asked for the fast path: how many moved to shared memory, and how many stayed
    /// on TCP.
    pub fn moved_and_stayed(&self) -> (u64, u64) {
        let connection = self.database.connect().unwrap();
        let status = |name| {
            let sql = format!("SHOW GLOBAL STATUS LIKE 'Loopback_fast_path_{name}'");
            let rows = connection.query(&sql, ()).unwrap();
            rows.get(0).unwrap().get(1).unwrap()
        };
        (status("connections"), status("fallbacks"))
    }
}
