//! How many connections there may be, who is refused, and what is counted of it (MySQL 8.4 manual,
//! 7.1.8, 7.1.10, 7.1.12).

pub mod common;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;

use common::test_server::{TestServer, in_memory};
use common::{RawClient, Reply, eventually};
use porpoise_server::ServerOptions;

fn start(variables: &[(&str, &str)]) -> TestServer {
    let options = ServerOptions {
        tcp: vec![([0, 0, 0, 0], 0).into()],
        workers: 2,
        ..ServerOptions::default()
    };
    let setup = [
        "CREATE USER ann IDENTIFIED WITH mysql_native_password BY 'one'",
        "CREATE USER bob IDENTIFIED WITH mysql_native_password BY 'two'",
    ];
    TestServer::start(in_memory(variables), options, &setup)
}

impl TestServer {
    fn tcp(&self, ip: IpAddr) -> RawClient {
        let port = self.server.tcp_addresses()[0].port();
        RawClient::tcp(SocketAddr::new(ip, port)).unwrap()
    }
}

/// An address of this machine that isn't a loopback address, if it has a network.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

const COM_QUIT: &[u8] = &[1];

/// Leaves as a client should, and waits until the server has seen it.
fn quit(mut client: RawClient) {
    client.send(0, COM_QUIT).unwrap();
    assert!(client.is_closed());
}

#[test]
fn a_user_has_no_more_connections_than_max_user_connections() {
    let server = start(&[]);
    let uncounted = server.local("ann", "one").unwrap();
    let mut root = server.root();
    assert!(root.query("SET GLOBAL max_user_connections = 2").is_ok());
    let first = server.local("ann", "one").unwrap();
    let mut second = server.local("ann", "one").unwrap();
    let refusal = server.local("ann", "one").err().unwrap();
    let words = "User ann already has more than 'max_user_connections' active connections";
    assert_eq!(refusal, (1203, words.to_string()));
    assert_eq!(second.query("SELECT @@max_user_connections").value(), "2");
    // Another user's places are others, and a place is free when its connection has ended.
    let _other = server.local("bob", "two").unwrap();
    quit(first);
    eventually(|| server.local("ann", "one").is_ok());
    drop(uncounted);
    let answer = root.query("SET SESSION max_user_connections = 5");
    let words =
        "SESSION variable 'max_user_connections' is read-only. Use SET GLOBAL to assign the value";
    assert_eq!(answer, Reply::Error(1621, words.to_string()));
    assert!(root.query("SET GLOBAL max_user_connections = 0").is_ok());
    let many: Vec<RawClient> = (0..8)
        .map(|_| server.local("ann", "one").unwrap())
        .collect();
    drop(many);
}

#[test]
fn a_host_that_breaks_off_handshakes_is_blocked_until_the_host_cache_is_truncated() {
    let Some(address) = own_address() else {
        println!("this machine has no network: nothing to test");
        return;
    };
    let server = start(&[("max_connect_errors", "3")]);
    let break_off = |ip| {
        let before = server.count("Aborted_connects");
        let mut client = server.tcp(ip);
        client.packet().unwrap();
        drop(client);
        eventually(|| server.count("Aborted_connects") > before);
    };
    // Two in a row are forgiven by one that goes well; a wrong password doesn't count.
    for round in 0..2 {
        break_off(address);
        break_off(address);
        assert_eq!(
            server.tcp(address).login("ann", "no").err().unwrap().0,
            1045
        );
        assert!(server.tcp(address).login("ann", "one").is_ok(), "{round}");
    }
    for _ in 0..3 {
        break_off(address);
    }
    let words = format!(
        "Host '{address}' is blocked because of many connection errors; unblock with 'mysqladmin flush-hosts'"
    );
    assert_eq!(
        server.tcp(address).login("ann", "one").err(),
        Some((1129, words))
    );
    let known = server.root().query(
        "SELECT IP, SUM_CONNECT_ERRORS, COUNT_HOST_BLOCKED_ERRORS, COUNT_HANDSHAKE_ERRORS, COUNT_AUTHENTICATION_ERRORS,
                LAST_ERROR_SEEN >= FIRST_SEEN FROM performance_schema.host_cache",
    );
    let figures: Vec<String> = known.rows()[0].iter().map(|c| c.clone().unwrap()).collect();
    assert_eq!(figures, [&address.to_string(), "3", "1", "7", "2", "1"]);
    // This machine itself is never blocked.
    let here: IpAddr = [127, 0, 0, 1].into();
    for _ in 0..5 {
        break_off(here);
    }
    assert!(server.tcp(here).login("ann", "one").is_ok());
    for sql in [
        "TRUNCATE TABLE performance_schema.host_cache",
        "FLUSH HOSTS",
    ] {
        assert!(server.root().query(sql).is_ok(), "{sql}");
        assert!(server.tcp(address).login("ann", "one").is_ok(), "{sql}");
        for _ in 0..3 {
            break_off(address);
        }
        let refusal = server.tcp(address).login("ann", "one").err().unwrap();
        assert_eq!(refusal.0, 1129);
    }
}

#[test]
fn a_host_that_no_account_is_for_is_not_even_greeted() {
    let Some(ip) = own_address() else {
        println!("NOT TRIED: this machine has loopback addresses alone");
        return;
    };
    let server = start(&[]);
    let mut root = server.root();
    assert!(server.tcp(ip).login("ann", "one").is_ok());
    assert!(root.query("DROP USER ann, bob").is_ok());
    let refusal = server.tcp(ip).login("ann", "one").err().unwrap();
    let words = format!("Host '{ip}' is not allowed to connect to this MySQL server");
    assert_eq!(refusal, (1130, words));
    let counted = "SELECT SUM(COUNT_HOST_ACL_ERRORS), SUM(SUM_CONNECT_ERRORS)
                   FROM performance_schema.host_cache";
    let counts = root.query(counted).rows()[0].clone();
    assert_eq!(counts, [Some("1".to_string()), Some("0".to_string())]);
    // Any account for that host is enough to be heard, and says nothing of others.
    let eve = format!("CREATE USER eve@'{ip}' IDENTIFIED BY 'three'");
    assert!(root.query(&eve).is_ok());
    assert_eq!(server.tcp(ip).login("ann", "one").err().unwrap().0, 1045);
    assert!(server.tcp(ip).login("eve", "three").is_ok());
}

#[test]
fn max_connections_is_set_no_higher_than_descriptors_allow() {
    let server = start(&[]);
    let mut root = server.root();
    assert!(root.query("SET GLOBAL max_connections = 99999").is_ok());
    let warning = root.query("SHOW WARNINGS").rows().to_vec();
    let most: u64 = root
        .query("SELECT @@max_connections")
        .value()
        .parse()
        .unwrap();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let limit = limit.current.unwrap_or(u64::MAX);
    assert_eq!(most < 99_999, limit < 200_000, "{most} of {limit}");
    assert!(most < limit);
    if most < 99_999 {
        let words = "Truncated incorrect max_connections value: '99999'";
        assert_eq!(warning[0][2].as_deref(), Some(words));
    }
}

#[test]
fn back_log_is_max_connections_unless_it_is_given() {
    for (variables, expected) in [
        (&[("max_connections", "77")][..], "77"),
        (&[("back_log", "9")], "9"),
        (&[("back_log", "-1")], "151"),
    ] {
        let server = start(variables);
        let mut root = server.root();
        assert_eq!(
            root.query("SELECT @@back_log").value(),
            expected,
            "{variables:?}"
        );
        assert_eq!(root.query("SET GLOBAL back_log = 5").error_number(), 1238);
    }
}

#[test]
fn a_client_that_connects_when_another_has_just_left_is_accepted() {
    const SEATS: usize = 4;
    let server = start(&[("max_connections", "4")]);
    std::thread::scope(|scope| {
        for _ in 0..SEATS {
            scope.spawn(|| {
                for _ in 0..150 {
                    let mut client = server.local("ann", "one").unwrap();
                    // It leaves without waiting for the server to notice.
                    client.send(0, COM_QUIT).unwrap();
                }
            });
        }
    });
}

/// What one client does.
#[derive(Clone, Copy)]
enum Behaviour {
    Leaves,
    Vanishes,
    HasAWrongPassword,
    SaysNothing,
    SendsHalfALogin,
}

#[test]
fn counters_are_exact_however_clients_come_and_go() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 20;
    let server = start(&[("max_connections", "1000")]);
    let names = ["Connections", "Aborted_clients", "Aborted_connects"];
    let before = names.map(|name| server.count(name));
    let visit = |visit| match visit {
        Behaviour::Leaves => quit(server.local("ann", "one").unwrap()),
        Behaviour::Vanishes => drop(server.local("ann", "one").unwrap()),
        Behaviour::HasAWrongPassword => {
            assert_eq!(server.local("ann", "no").err().unwrap().0, 1045);
        }
        Behaviour::SaysNothing => {
            let mut raw = RawClient::local(&server.socket()).unwrap();
            raw.packet().unwrap();
        }
        Behaviour::SendsHalfALogin => {
            use std::io::Write;
            let mut raw = UnixStream::connect(server.socket()).unwrap();
            raw.write_all(b"\x60\0\0\x01abc").unwrap();
        }
    };
    let visits = [
        Behaviour::Leaves,
        Behaviour::Vanishes,
        Behaviour::HasAWrongPassword,
        Behaviour::SaysNothing,
        Behaviour::SendsHalfALogin,
    ];
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for round in 0..ROUNDS * visits.len() as u64 {
                    visit(visits[((round + thread) % visits.len() as u64) as usize]);
                }
            });
        }
    });
    let of_each = THREADS * ROUNDS;
    eventually(|| server.count("Aborted_connects") - before[2] >= 3 * of_each);
    eventually(|| server.count("Threads_connected") == 1);
    // Each look at a counter is a connection, too, which is in it.
    let root_visits = 1;
    let connections = server.count("Connections");
    assert_eq!(server.count("Connections"), connections + root_visits);
    assert_eq!(server.count("Aborted_connects") - before[2], 3 * of_each);
    let aborted = server.count("Aborted_clients");
    // Those who looked vanished as well.
    assert!(aborted - before[1] >= of_each, "{aborted}");
    let most = server.count("Max_used_connections");
    assert!((2..=THREADS * 3 + 8).contains(&most), "{most}");
    let at = server.status("Max_used_connections_time");
    assert!(at.len() == 19 && at.starts_with("20"), "{at}");
    assert!(server.count("Threads_created") >= 2);
    assert_eq!(server.count("Threads_running"), 1);
    assert_eq!(server.count("Connection_errors_max_connections"), 0);
}
