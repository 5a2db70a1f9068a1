//! One file over HTTP: from one address after another, with patience, going on where it broke off.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ureq::http::{HeaderMap, Response, StatusCode, header};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body};

use super::Watch;
use super::check::{self, HEAD};
use super::error::FetchError;
use super::staging::{TAG, writing};
use crate::graph::PublishedFile;
use crate::net::Bytes;

/// Names a file with the certificates to trust, where a network has its own.
const CERTIFICATES: &str = "SSL_CERT_FILE";

/// An attempt that brought so much was a good one: the next ones are counted anew.
const PROGRESS: u64 = 1 << 20;

/// Where a name is not known.
const NO_HOST: &str = "there is no such host, or no network here";

/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// How long is waited, and how often it is tried.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    /// For a connection.
    pub connect: Duration,
    /// For an answer to begin, and for each piece of it.
    pub idle: Duration,
    /// Attempts in a row that bring nothing.
    pub tries: u32,
    /// Before the second attempt; doubled before each one after.
    pub pause: Duration,
    /// Over how long the speed is looked at.
    pub window: Duration,
    /// Bytes that have to come in each window.
    pub least: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            idle: Duration::from_mins(1),
            tries: 5,
            pause: Duration::from_secs(1),
            window: Duration::from_mins(1),
            // In a minute, 1 kB a second: such a connection is better begun anew.
            least: 64 << 10,
        }
    }
}

/// Downloads files.
pub(super) struct Client<'a> {
    agent: Agent,
    patience: &'a Patience,
    watch: &'a dyn Watch,
}

/// Why an attempt brought no whole file.
enum Failed {
    /// Another attempt may; after so long, if the server says.
    Now(String, Option<Duration>),
    /// This address will not.
    Here(String),
    /// No address can help.
    For(FetchError),
}

impl From<FetchError> for Failed {
    fn from(error: FetchError) -> Self {
        Self::For(error)
    }
}

/// One file, and what is known of it.
struct Job<'a> {
    file: &'a PublishedFile,
    part: &'a Path,
    /// Whether so many bytes may be downloaded.
    agree: &'a dyn Fn(u64) -> Result<(), FetchError>,
}

/// What an answer promises.
struct Promise {
    /// Where it begins in the file.
    start: u64,
    /// Bytes of the whole file, if they are known.
    whole: Option<u64>,
}

impl<'a> Client<'a> {
    /// With proxies from the environment (`https_proxy`, `all_proxy`, `no_proxy`, …) and, if
    /// `SSL_CERT_FILE` is set, its certificates.
    pub(super) fn new(patience: &'a Patience, watch: &'a dyn Watch) -> Result<Self, FetchError> {
        let mut tls = TlsConfig::builder();
        if let Some(path) = std::env::var_os(CERTIFICATES).filter(|path| !path.is_empty()) {
            tls = tls.root_certs(certificates(Path::new(&path))?);
        }
        let config = Agent::config_builder()
            .tls_config(tls.build())
            .user_agent(concat!("grapevine/", env!("CARGO_PKG_VERSION")))
            // What is packed anew on the way has neither the length nor the parts of the file.
            .accept_encoding("identity")
            .http_status_as_error(false)
            .max_redirects(10)
            .timeout_connect(Some(patience.connect))
            .timeout_recv_response(Some(patience.idle))
            .timeout_per_read(Some(patience.idle));
        Ok(Self {
            agent: config.build().new_agent(),
            patience,
            watch,
        })
    }

    /// Downloads a file to `part`; whether it was put together of several answers.
    pub(super) fn download(
        &self,
        addresses: &[String],
        file: &PublishedFile,
        part: &Path,
        agree: &dyn Fn(u64) -> Result<(), FetchError>,
    ) -> Result<bool, FetchError> {
        let job = Job { file, part, agree };
        let mut reasons = Vec::new();
        for address in addresses {
            let mut tried = 0;
            // What an earlier process left counts as well.
            let mut resumed = length(part) > 0;
            loop {
                let before = length(part);
                let (what, wait) = match self.attempt(address, &job) {
                    Ok(()) => return Ok(resumed),
                    Err(Failed::Now(what, wait)) => (what, wait),
                    Err(Failed::Here(what)) => {
                        reasons.push(format!("{address}: {what}"));
                        break;
                    }
                    Err(Failed::For(error)) => return Err(error),
                };
                let now = length(part);
                resumed = now > 0;
                tried = if now >= before + PROGRESS {
                    1
                } else {
                    tried + 1
                };
                if tried >= self.patience.tries {
                    reasons.push(format!("{address}: {what}, {tried} times in a row"));
                    break;
                }
                let pause = wait.unwrap_or(self.patience.pause * 2_u32.pow(tried - 1));
                let pause = pause.min(LONGEST_PAUSE);
                let name = file.name();
                self.watch
                    .say(&format!("{name}: {what}; trying again in {pause:?}"));
                sleep(pause);
            }
        }
        Err(FetchError::Download {
            file: file.name().to_owned(),
            reasons,
            by_hand: String::new(),
        })
    }

    /// One request, and what it brings.
    fn attempt(&self, address: &str, job: &Job<'_>) -> Result<(), Failed> {
        let mut have = length(job.part);
        let tag = Tag::of(job.part);
        if have > 0 && tag.address != address {
            // Another server's file may differ where this one's would go on.
            fs::remove_file(job.part).map_err(writing(job.part))?;
            have = 0;
        }
        // A request for what follows the last byte would be refused.
        if have > 0 && job.file.bytes == Some(have) {
            return Ok(());
        }
        let mut request = self.agent.get(address);
        if have > 0 {
            request = request.header(header::RANGE, format!("bytes={have}-"));
            // Without one the server goes on in whatever it has now: then the sum of the whole must
            // tell.
            if !tag.version.is_empty() {
                request = request.header(header::IF_RANGE, &tag.version);
            }
        }
        // A proxy would look for this machine's own address on itself.
        let request = if is_own(address) {
            request.config().proxy(None).build()
        } else {
            request
        };
        let response = request.call().map_err(|error| failed(&error))?;
        let promise = promise(&response, have, job)?;
        if let Some(whole) = promise.whole {
            (job.agree)(whole)?;
        }
        if promise.start > 0 {
            plausible(&promise, job)?;
        }
        // Before the first byte: a part without its tag could not be gone on with.
        tag.write(address, response.headers())?;
        let mut file = OpenOptions::new();
        let mut file = (file.create(true).write(true).truncate(promise.start == 0))
            .append(promise.start > 0)
            .open(job.part)
            .map_err(writing(job.part))?;
        self.watch.begin(
            job.file.name(),
            promise.whole.or(job.file.bytes),
            promise.start,
        );
        let came = self.receive(response, &promise, job, &mut file);
        // Also what came before a break is to be there after another.
        let kept = file.sync_all().map_err(writing(job.part));
        // Of two mistakes the first is told.
        came?;
        Ok(kept?)
    }

    /// Writes the body of an answer to the file.
    fn receive(
        &self,
        response: Response<Body>,
        promise: &Promise,
        job: &Job<'_>,
        file: &mut File,
    ) -> Result<(), Failed> {
        let mut body = response.into_body().into_reader();
        let mut buffer = vec![0; 1 << 16];
        let (mut have, mut head) = (promise.start, Vec::new());
        let (mut since, mut seen) = (Instant::now(), 0);
        // Some answers do not say how long they are.
        let most = promise.whole.or(job.file.bytes);
        loop {
            let read = match body.read(&mut buffer) {
                Ok(read) => read,
                Err(error) => return Err(Failed::Now(broke(&error, have), None)),
            };
            if promise.start == 0 && head.len() < HEAD {
                head.extend(&buffer[..read.min(HEAD)]);
                // Enough to tell a web page by, or all there is.
                if head.len() >= HEAD || read == 0 {
                    check::kind(job.file.name(), &head).map_err(|what| wrong(job.part, what))?;
                    plausible(promise, job)?;
                }
            }
            if read == 0 {
                break;
            }
            have += read as u64;
            if let Some(most) = most.filter(|&most| have > most) {
                let what = format!("has more than the {most} bytes of the file");
                return Err(wrong(job.part, what));
            }
            file.write_all(&buffer[..read]).map_err(writing(job.part))?;
            self.watch.more(read as u64);
            seen += read as u64;
            if since.elapsed() >= self.patience.window {
                if seen < self.patience.least {
                    let speed = Bytes(self.patience.least);
                    let what = format!("slower than {speed} in {:?}", self.patience.window);
                    return Err(Failed::Now(what, None));
                }
                (since, seen) = (Instant::now(), 0);
            }
        }
        match promise.whole {
            Some(whole) if have < whole => Err(Failed::Now(
                format!("ended after {have} of {whole} bytes"),
                None,
            )),
            _ => Ok(()),
        }
    }
}

/// Whether an address is of this machine.
fn is_own(address: &str) -> bool {
    let host = address.split("://").nth(1).unwrap_or_default();
    ["127.", "localhost", "[::1]"]
        .iter()
        .any(|own| host.starts_with(own))
}

/// What is in a file; nothing where there is none.
fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |file| file.len())
}

/// Where what came is not the file: it is deleted, and this address not tried again.
fn wrong(part: &Path, what: String) -> Failed {
    // Best effort: whatever stays is found out by the check of the whole.
    let _ = fs::remove_file(part);
    Failed::Here(what)
}

/// Where what is here is of no use: it is deleted, and this address tried again.
fn anew(part: &Path, what: &str) -> Failed {
    let _ = fs::remove_file(part);
    Failed::Now(what.to_owned(), None)
}

fn broke(error: &std::io::Error, have: u64) -> String {
    format!("broke off after {have} bytes ({error})")
}

/// Whether the whole has the length that is published.
fn plausible(promise: &Promise, job: &Job<'_>) -> Result<(), Failed> {
    match (promise.whole, job.file.bytes) {
        // A sum says more than a length, but no sum is that of another length.
        (Some(whole), Some(bytes)) if whole != bytes => {
            let what = format!("has {whole} bytes, and the published file {bytes}");
            Err(wrong(job.part, what))
        }
        _ => Ok(()),
    }
}

/// What an answer is good for.
fn promise(response: &Response<Body>, have: u64, job: &Job<'_>) -> Result<Promise, Failed> {
    let headers = response.headers();
    let status = response.status();
    let of = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let later = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    match status {
        StatusCode::OK => Ok(Promise {
            start: 0,
            whole: of(header::CONTENT_LENGTH).and_then(|length| length.parse().ok()),
        }),
        StatusCode::PARTIAL_CONTENT if have > 0 => {
            let range = of(header::CONTENT_RANGE).and_then(content_range);
            match range {
                Some((start, whole)) if start == have => Ok(Promise { start, whole }),
                _ => Err(anew(job.part, "sent another part than was asked for")),
            }
        }
        // What is here is longer than the file has become: from the start, then.
        StatusCode::RANGE_NOT_SATISFIABLE => Err(anew(job.part, "has no part to go on with")),
        _ if later.contains(&status) || status.is_server_error() => {
            let wait = of(header::RETRY_AFTER).and_then(|wait| wait.parse().ok());
            Err(Failed::Now(
                format!("answers {status}"),
                wait.map(Duration::from_secs),
            ))
        }
        _ => Err(Failed::Here(format!("answers {status}"))),
    }
}

/// `bytes 10-19/20` → 10, and 20 unless it is `*`.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, whole) = text.strip_prefix("bytes ")?.split_once('/')?;
    let start = range.split_once('-')?.0.parse().ok()?;
    Some((start, whole.parse().ok()))
}

/// What a request that got no answer came to.
fn failed(error: &ureq::Error) -> Failed {
    use ureq::Error::{ConnectionFailed, HostNotFound, Io, Protocol, Timeout};
    // What systems say of a name that nobody knows, which they have no kind for.
    let unknown = [
        "Name or service not known",
        "nodename nor servname",
        "No such host",
    ];
    match error {
        // Without a network no name is found, and waiting does not help.
        HostNotFound => Failed::Here(NO_HOST.to_owned()),
        Io(error) if unknown.iter().any(|text| error.to_string().contains(text)) => {
            Failed::Here(NO_HOST.to_owned())
        }
        Io(_) | Timeout(_) | Protocol(_) | ConnectionFailed => Failed::Now(error.to_string(), None),
        other => Failed::Here(other.to_string()),
    }
}

/// The certificates of a file.
fn certificates(path: &Path) -> Result<RootCerts, FetchError> {
    let asked = |what: String| FetchError::Asked {
        what: format!("{CERTIFICATES}, {}: {what}", path.display()),
    };
    let text = fs::read(path).map_err(|error| asked(format!("cannot be read: {error}")))?;
    let mut found = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| asked(error.to_string()))? {
            found.push(certificate);
        }
    }
    if found.is_empty() {
        return Err(asked("has no certificate".to_owned()));
    }
    Ok(RootCerts::new_with_certs(&found))
}

/// Which version of a file a part is of: the address, and what the server calls the version.
struct Tag {
    path: PathBuf,
    address: String,
    version: String,
}

impl Tag {
    fn of(part: &Path) -> Self {
        let path = part.with_added_extension(TAG);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let (address, version) = text.split_once('\n').unwrap_or_default();
        Self {
            address: address.to_owned(),
            version: version.to_owned(),
            path,
        }
    }

    /// Keeps the version of what is about to come.
    fn write(&self, address: &str, headers: &HeaderMap) -> Result<(), FetchError> {
        let of = |name| headers.get(name).and_then(|value| value.to_str().ok());
        // A weak tag does not promise the same bytes.
        let strong = of(header::ETAG).filter(|tag| tag.starts_with('"'));
        let version = strong
            .or_else(|| of(header::LAST_MODIFIED))
            .unwrap_or_default();
        fs::write(&self.path, format!("{address}\n{version}")).map_err(writing(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        assert_eq!(content_range("bytes 10-19/20"), Some((10, Some(20))));
        assert_eq!(content_range("bytes 10-19/*"), Some((10, None)));
        for text in ["", "bytes */20", "items 1-2/3", "bytes 1/2"] {
            assert_eq!(content_range(text), None, "{text}");
        }
    }
}
