//! `porpoise lab watch` tells what it found: to files, to a program over HTTP, to people by mail.
//! Receivers are real ones, if small: each speaks its protocol over TCP, mail servers TLS as well.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

/// Runs of a build that doesn't start take no time, and are one finding.
const EXPERIMENT: &str = r#"title = "Nightly"
runs = 2
seconds = 0.1
ways = ["unix"]
workloads = ["oltp_point_select"]
clients = [1]
warm_up = { min_seconds = 0.05, max_seconds = 0.1 }

[data]
rows = 100

[[servers]]
name = "Porpoise"
"#;

struct Watch {
    folder: TempDir,
}

impl Watch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("nightly.toml"), EXPERIMENT).unwrap();
        std::fs::create_dir(folder.path().join("builds")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn broken_build(&self, name: &str) {
        let path = self.path("builds").join(name);
        std::fs::write(&path, "#!/bin/sh\necho it is broken; exit 1\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String) {
        let builds = ["nightly.toml", "--builds", "builds"];
        self.watch(&[&builds, arguments].concat(), environment)
    }

    fn watch(&self, arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_porpoise"))
            .args(["lab", "watch", "--quiet"])
            .args(arguments)
            .envs(environment.iter().copied())
            .current_dir(self.folder.path())
            .output()
            .unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text.into_owned())
    }
}

/// Takes connections one after the other, each as `talk` says, and passes on what came.
fn receiver(
    listener: TcpListener,
    talk: impl Fn(BufReader<TcpStream>) -> String + Send + 'static,
) -> Receiver<String> {
    let (sender, received) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let told = talk(BufReader::new(stream.unwrap()));
            if sender.send(told).is_err() {
                break;
            }
        }
    });
    received
}

/// The next line; none, like an empty one, where the client has left.
fn line(stream: &mut BufReader<impl Read>) -> String {
    let mut line = String::new();
    if stream.read_line(&mut line).is_err() {
        line.clear();
    }
    line.trim_end().to_owned()
}

/// A request's head and body, answered with a status.
fn http(mut stream: BufReader<TcpStream>, status: &str) -> String {
    let (mut request, mut length) = (String::new(), 0);
    loop {
        let line = line(&mut stream);
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        request += &line;
        request.push('\n');
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    request += std::str::from_utf8(&body).unwrap();
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 4\r\nConnection: close\r\n\r\nwhy?");
    stream.get_mut().write_all(answer.as_bytes()).unwrap();
    request
}

fn say(stream: &mut BufReader<impl Read + Write>, words: &str) {
    // One that refuses a certificate has left: there is no mail of it then.
    let _ = write!(stream.get_mut(), "{words}\r\n");
    let _ = stream.get_mut().flush();
}

/// A mail with its envelope.
fn smtp(mut stream: BufReader<TcpStream>) -> String {
    say(&mut stream, "220 sink ESMTP");
    mail(stream)
}

/// The same, encrypted from the beginning.
fn smtps(stream: BufReader<TcpStream>, config: &Arc<ServerConfig>) -> String {
    let mut stream = encrypted(stream, config);
    say(&mut stream, "220 sink ESMTP");
    mail(stream)
}

/// The same, encrypted when the client asks for it.
fn smtp_starttls(mut stream: BufReader<TcpStream>, config: &Arc<ServerConfig>) -> String {
    say(&mut stream, "220 sink ESMTP");
    assert!(line(&mut stream).starts_with("EHLO "));
    say(&mut stream, "250-sink\r\n250 STARTTLS");
    if line(&mut stream) != "STARTTLS" {
        return "not encrypted".into();
    }
    say(&mut stream, "220 go on");
    mail(encrypted(stream, config))
}

fn encrypted(
    stream: BufReader<TcpStream>,
    config: &Arc<ServerConfig>,
) -> BufReader<StreamOwned<ServerConnection, TcpStream>> {
    let connection = ServerConnection::new(config.clone()).unwrap();
    BufReader::new(StreamOwned::new(connection, stream.into_inner()))
}

/// What a client says after the greeting.
fn mail(mut stream: BufReader<impl Read + Write>) -> String {
    let mut mail = String::new();
    loop {
        let command = line(&mut stream);
        match command.split([' ', ':']).next().unwrap() {
            "EHLO" => say(&mut stream, "250-sink\r\n250 8BITMIME"),
            "DATA" => {
                say(&mut stream, "354 go on");
                loop {
                    let line = line(&mut stream);
                    if line == "." {
                        break;
                    }
                    mail += &line;
                    mail.push('\n');
                }
                say(&mut stream, "250 taken");
            }
            "QUIT" | "" => {
                say(&mut stream, "221 bye");
                return mail;
            }
            _ => {
                mail += &command;
                mail.push('\n');
                say(&mut stream, "250 so be it");
            }
        }
    }
}

fn next(received: &Receiver<String>) -> String {
    received.recv_timeout(Duration::from_secs(30)).unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_finding_goes_once_to_each_receiver() {
    let watch = Watch::new();
    watch.broken_build("build-1");
    let http_listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let smtp_listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let webhook = format!(
        "http://{}/hook?secret=s3cret",
        http_listener.local_addr().unwrap()
    );
    let server = format!("smtp://{}", smtp_listener.local_addr().unwrap());
    let requests = receiver(http_listener, |stream| http(stream, "204 No Content"));
    let mails = receiver(smtp_listener, smtp);
    let (from, to) = ("Lab <lab@example.com>", "dev@example.com");
    let mail = ["--mail-from", from, "--mail-to", to, "--mail-to", "a@b.org"];
    let arguments = [&mail[..], &["--json", "found.json"]].concat();
    let environment = [
        ("PORPOISE_WEBHOOK", webhook.as_str()),
        ("PORPOISE_SMTP", &server),
    ];

    let (code, said) = watch.run(&arguments, &environment);
    assert_eq!(code, Some(3), "{said}");
    let request = next(&requests);
    let (head, body) = request.split_once("\n\n").unwrap();
    assert!(
        head.starts_with("POST /hook?secret=s3cret HTTP/1.1\n")
            && head
                .to_ascii_lowercase()
                .contains("content-type: application/json"),
        "{head}"
    );
    for part in [
        r#""text":"Nightly: 0 worse, 0 better, 1 failed\nfailed: build-1: "#,
        r#""experiment":"Nightly""#,
        r#""revision":"build-1","why":"Porpoise Unix socket, oltp_point_select, 1 clients: "#,
        "it is broken",
    ] {
        assert!(body.contains(part), "{part} in {body}");
    }
    let mail = next(&mails);
    for part in [
        "MAIL FROM:<lab@example.com>",
        "RCPT TO:<dev@example.com>\nRCPT TO:<a@b.org>",
        "Subject: Nightly: 0 worse, 0 better, 1 failed",
        "failed: build-1: Porpoise Unix socket",
        "filename=\"history.html\"",
    ] {
        assert!(mail.contains(part), "{part} in {mail}");
    }
    let json = read(&watch.path("found.json"));
    assert_eq!(
        json.matches("\"revision\": \"build-1\"").count(),
        1,
        "of two runs that fail alike: {json}"
    );
    // What it keeps may be looked at by others.
    let kept = read(&watch.path("nightly.history/alerts.json"));
    assert!(kept.contains("mail to dev@example.com") && !kept.contains("s3cret"));

    // What can't be written is told by its name.
    for (option, place) in [
        ("--junit", "nightly.toml/junit"),
        ("--history", "nightly.toml/h"),
    ] {
        let (code, said) = watch.run(&[option, place], &[]);
        assert!(
            code == Some(1) && said.contains(&format!("{place}: ")),
            "{said}"
        );
    }

    // Nothing is new; then one build is.
    let (code, said) = watch.run(&arguments, &environment);
    assert_eq!(code, Some(0), "{said}");
    watch.broken_build("build-2");
    let (code, said) = watch.run(&arguments, &environment);
    assert_eq!(code, Some(3), "{said}");
    for told in [next(&requests), next(&mails)] {
        // The page beside the mail has the whole history.
        assert!(
            told.contains("failed: build-2") && !told.contains("failed: build-1"),
            "{told}"
        );
    }
    assert!(requests.try_recv().is_err() && mails.try_recv().is_err());
}

#[test]
fn what_cannot_be_delivered_is_told_and_delivered_the_next_time() {
    let watch = Watch::new();
    watch.broken_build("build-1");
    // Nobody takes connections there.
    let address = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
    let http_listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (http_place, refusing) = (
        address(&http_listener),
        TcpListener::bind("127.0.0.1:0").unwrap(),
    );
    drop(http_listener);
    let smtp_listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let smtp_place = address(&smtp_listener);
    drop(smtp_listener);
    let urls = [
        format!("http://{http_place}/?token=s3cret"),
        format!("http://{}/", address(&refusing)),
        format!("smtp://{smtp_place}"),
    ];
    let refused = receiver(refusing, |stream| http(stream, "403 Forbidden"));
    let to = ["--mail-from", "a@example.com", "--mail-to", "b@example.com"];
    let (code, said) = watch.run(
        &[&to[..], &["--smtp", &urls[2], "--webhook", &urls[0]]].concat(),
        &[("PORPOISE_WEBHOOK", &urls[1])],
    );
    assert_eq!(code, Some(4), "{said}");
    for part in [
        &format!("webhook {http_place}: ")[..],
        "it answered 403 Forbidden: why?; it is tried again next time",
        "mail to b@example.com: ",
        "failed: build-1: ",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!said.contains("s3cret"), "{said}");
    next(&refused);

    let requests = receiver(TcpListener::bind(&http_place).unwrap(), |stream| {
        http(stream, "200 OK")
    });
    let mails = receiver(TcpListener::bind(&smtp_place).unwrap(), smtp);
    let arguments = [&to[..], &["--smtp", &urls[2], "--webhook", &urls[0]]].concat();
    let (code, said) = watch.run(&arguments, &[]);
    assert_eq!(code, Some(0), "the finding isn't new: {said}");
    assert!(next(&requests).contains("build-1") && next(&mails).contains("build-1"));
}

/// What a server is certified by: an authority's certificate as PEM, and its own of that authority,
/// for a name.
fn certified(name: &str) -> (String, Arc<ServerConfig>) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let subject = &mut params.distinguished_name;
    subject.push(DnType::CommonName, "an authority");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    (authority.pem(), Arc::new(config))
}

#[test]
fn mail_goes_encrypted_and_only_to_servers_whose_certificates_are_trusted() {
    type Talk = fn(BufReader<TcpStream>, &Arc<ServerConfig>) -> String;
    let (authority, trusted) = certified("localhost");
    let (_, unknown) = certified("localhost");
    let watch = Watch::new();
    watch.broken_build("build-1");
    let authorities = watch.path("authorities.pem");
    std::fs::write(&authorities, authority).unwrap();
    let environment = [("SSL_CERT_FILE", authorities.to_str().unwrap())];
    let talks: [(&str, Talk, &str); 2] = [
        ("smtps", smtps, ""),
        ("smtp", smtp_starttls, "?tls=required"),
    ];
    for (scheme, talk, options) in talks {
        let sink = |config: &Arc<ServerConfig>| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let config = config.clone();
            (
                port,
                receiver(listener, move |stream| talk(stream, &config)),
            )
        };
        let send = |host: &str, port: u16| {
            let server = format!("{scheme}://{host}:{port}{options}");
            let to = ["--mail-from", "a@example.com", "--mail-to", "b@example.com"];
            watch.run(&[&to[..], &["--smtp", &server]].concat(), &environment)
        };
        // Another authority's is refused, and so is one of another name.
        for (host, config, words) in [
            ("localhost", &unknown, "invalid peer certificate"),
            ("127.0.0.1", &trusted, "certificate not valid for name"),
        ] {
            let (port, mails) = sink(config);
            let (code, said) = send(host, port);
            assert!(code == Some(4) && said.contains(words), "{said}");
            assert_eq!(next(&mails), "");
        }
        let (port, mails) = sink(&trusted);
        let (code, said) = send("localhost", port);
        assert!(matches!(code, Some(0 | 3)), "{said}");
        let mail = next(&mails);
        assert!(mail.contains("failed: build-1"), "{mail}");
        std::fs::remove_dir_all(watch.path("nightly.history")).unwrap();
    }
    // Where nothing is said, what a server offers is used, whatever its certificate.
    for (options, config, is_encrypted) in [
        ("", &unknown, true),
        ("", &trusted, true),
        ("?tls=none", &trusted, false),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("smtp://{}{options}", listener.local_addr().unwrap());
        let config = config.clone();
        let mails = receiver(listener, move |stream| smtp_starttls(stream, &config));
        let to = ["--mail-from", "a@example.com", "--mail-to", "b@example.com"];
        let (code, said) = watch.run(&[&to[..], &["--smtp", &server]].concat(), &environment);
        let mail = next(&mails);
        match is_encrypted {
            true => assert!(
                matches!(code, Some(0 | 3)) && mail.contains("failed: build-1"),
                "{said} {mail}"
            ),
            false => assert_eq!(mail, "not encrypted"),
        }
        std::fs::remove_dir_all(watch.path("nightly.history")).unwrap();
    }
    // Where encryption is required, a server without it gets nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("smtp://{}?tls=required", listener.local_addr().unwrap());
    let mails = receiver(listener, smtp);
    let to = ["--mail-from", "a@example.com", "--mail-to", "b@example.com"];
    let (code, said) = watch.run(&[&to[..], &["--smtp", &server]].concat(), &environment);
    assert!(code == Some(4) && said.contains("STARTTLS"), "{said}");
    let mail = next(&mails);
    assert!(!mail.contains("MAIL FROM"), "{mail}");
}

#[test]
fn receivers_that_cannot_be_are_refused_before_anything_is_measured() {
    let watch = Watch::new();
    watch.broken_build("build-1");
    for (arguments, words) in [
        (
            &["--webhook", "example.com/hook"][..],
            "http:// or https://",
        ),
        (&["--webhook", "ftp://example.com"], "http:// or https://"),
        (
            &["--mail-from", "a@example.com", "--mail-to", "nobody"],
            "the mail address 'nobody'",
        ),
        (
            &[
                "--smtp",
                "http://h",
                "--mail-from",
                "a@b.c",
                "--mail-to",
                "a@b.c",
            ],
            "the mail server's URL: ",
        ),
        (&["--mail-to", "a@example.com"], "--mail-from"),
    ] {
        let (code, said) = watch.run(arguments, &[]);
        assert!(
            matches!(code, Some(1 | 2)) && said.contains(words),
            "{code:?} {said}"
        );
    }
    assert!(!watch.path("nightly.history").exists());
}

#[test]
fn a_command_makes_the_servers_of_revisions() {
    let watch = Watch::new();
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args([
                "-C",
                "repository",
                "-c",
                "user.name=T",
                "-c",
                "user.email=t@example.com",
            ])
            .args(arguments)
            .current_dir(watch.folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    std::fs::create_dir(watch.path("repository")).unwrap();
    git(&["init", "--quiet"]);
    let commits = ["first", "second"].map(|name| {
        git(&["commit", "--quiet", "--allow-empty", "--message", name]);
        git(&["rev-parse", "HEAD"])
    });
    let command = format!(
        "if [ $REVISION = {} ]; then echo {}; else echo no compiler >&2; exit 1; fi",
        commits[0],
        env!("CARGO_BIN_EXE_porpoise")
    );
    let range = [
        "nightly.toml",
        "--repository",
        "repository",
        "--range",
        "HEAD",
    ];
    let more = ["--values", "values.tsv", "--command", &command];
    let (code, said) = watch.watch(&[&range[..], &more].concat(), &[]);
    assert!(
        code == Some(3)
            && said.contains(&format!("failed: {}: ", commits[1]))
            && said.contains("no compiler"),
        "{said}"
    );
    let values = read(&watch.path("values.tsv"));
    let lines: Vec<&str> = values.lines().collect();
    assert_eq!(lines.len(), 1 + 3, "{values}");
    assert!(
        lines[1].starts_with(&format!("{}\tPorpoise Unix socket, ", commits[0])),
        "{values}"
    );
    // So few values tell nothing of noise.
    let (code, said) = watch.watch(&["--evaluate", "values.tsv"], &[]);
    assert!(
        code == Some(1) && said.contains("1 values are too few"),
        "{said}"
    );
}
