//! A server on a loopback port that answers one request after another, each as it is told.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

/// How one request is answered.
#[derive(Clone)]
pub(super) struct Reply {
    status: &'static str,
    headers: Vec<String>,
    tag: Option<&'static str>,
    body: Vec<u8>,
    declared: Option<u64>,
    /// Bytes of the body after which the connection is closed.
    dies: Option<usize>,
    /// Bytes of the body after which nothing comes any more, for a while.
    hangs: Option<usize>,
    drips: bool,
    slow: Duration,
}

impl Reply {
    pub(super) fn of(body: &[u8]) -> Self {
        Self {
            status: "200 OK",
            headers: vec![],
            tag: None,
            body: body.to_vec(),
            declared: None,
            dies: None,
            hangs: None,
            drips: false,
            slow: Duration::ZERO,
        }
    }

    pub(super) fn redirect(to: &str) -> Self {
        Self {
            headers: vec![format!("Location: {to}")],
            ..Self::of(b"").status("302 Found")
        }
    }

    pub(super) fn status(self, status: &'static str) -> Self {
        Self { status, ..self }
    }

    /// With the name of a version.
    pub(super) fn tagged(self, tag: &'static str) -> Self {
        Self {
            tag: Some(tag),
            ..self
        }
    }

    pub(super) fn declaring(self, bytes: u64) -> Self {
        Self {
            declared: Some(bytes),
            ..self
        }
    }

    pub(super) fn dying_after(self, bytes: usize) -> Self {
        Self {
            dies: Some(bytes),
            ..self
        }
    }

    pub(super) fn hanging_after(self, bytes: usize) -> Self {
        Self {
            hangs: Some(bytes),
            ..self
        }
    }

    /// A byte every 20 ms.
    pub(super) fn dripping(self) -> Self {
        Self {
            drips: true,
            ..self
        }
    }

    pub(super) fn slow(self, slow: Duration) -> Self {
        Self { slow, ..self }
    }

    fn send(&self, request: &str, stream: &mut TcpStream) -> std::io::Result<()> {
        let of = |name: &str| {
            let lines = request.lines();
            let mut found = lines.filter(|line| line.to_lowercase().starts_with(name));
            found
                .next()
                .and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim())
        };
        let start: Option<usize> = of("range:").and_then(|range| {
            range
                .strip_prefix("bytes=")?
                .strip_suffix('-')?
                .parse()
                .ok()
        });
        // As servers do: another version is sent whole.
        let same = of("if-range:").is_none_or(|version| Some(version) == self.tag);
        let start = start.filter(|_| same && self.status.starts_with("200"));
        let body = &self.body[start.unwrap_or(0)..];
        let status = start.map_or(self.status, |_| "206 Partial Content");
        let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
        let declared = self.declared.unwrap_or(body.len() as u64);
        head += &format!("Content-Length: {declared}\r\n");
        if let Some(start) = start {
            let all = self.body.len();
            head += &format!("Content-Range: bytes {start}-{}/{all}\r\n", all - 1);
        }
        if let Some(tag) = self.tag {
            head += &format!("ETag: {tag}\r\n");
        }
        for header in &self.headers {
            head += &format!("{header}\r\n");
        }
        sleep(self.slow);
        stream.write_all(format!("{head}\r\n").as_bytes())?;
        if self.drips {
            for byte in body {
                stream.write_all(&[*byte])?;
                sleep(Duration::from_millis(20));
            }
            return Ok(());
        }
        let sent = self
            .dies
            .or(self.hangs)
            .unwrap_or(body.len())
            .min(body.len());
        stream.write_all(&body[..sent])?;
        stream.flush()?;
        if self.hangs.is_some() {
            // Longer than a test's patience, or the closed connection would be what is noticed.
            sleep(Duration::from_secs(2));
        }
        Ok(())
    }
}

/// A server on this machine.
pub(super) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers as many requests as there are replies, then goes away.
    pub(super) fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        std::thread::spawn(move || {
            for reply in replies {
                let Ok((mut stream, _)) = listener.accept() else {
                    return;
                };
                let request = read_head(&mut stream);
                kept.lock().unwrap().push(request.clone());
                // Whoever asked may have gone away: some replies are made for that.
                std::thread::spawn(move || reply.send(&request, &mut stream));
            }
        });
        Self { address, requests }
    }

    /// The address of a file.
    pub(super) fn at(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    /// All that were made so far.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}
