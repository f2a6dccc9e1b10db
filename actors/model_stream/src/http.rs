//! One HTTP exchange: the finished body out, a stream of bytes in.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use interpreter_messages::Secret;
use interpreter_messages::model::HttpTransport;
use interpreter_messages::wire::WireRequest;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};

use crate::failure::{self, Asked, Failure};
use crate::retry;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes of an error body that are read.
const ERROR_BODY: usize = 64 * 1024;

/// Connections to providers, kept and shared by all sessions. Cheap to clone; made when first used.
#[derive(Clone, Default)]
pub struct HttpClient {
    clients: Arc<Clients>,
}

#[derive(Default)]
struct Clients {
    /// For `http://`: needs no certificates, whose loading costs more than a whole turn.
    plain: OnceLock<reqwest::Client>,
    tls: OnceLock<reqwest::Client>,
}

impl HttpClient {
    /// A client without connections.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn for_url(&self, url: &str) -> Result<reqwest::Client, String> {
        let plain = url.starts_with("http://");
        let slot = if plain {
            &self.clients.plain
        } else {
            &self.clients.tls
        };
        if let Some(client) = slot.get() {
            return Ok(client.clone());
        }
        // Installing twice is refused, and means that it is there.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .user_agent(concat!("open-interpreter/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none());
        if plain {
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build().map_err(|error| error.to_string())?;
        Ok(slot.get_or_init(|| client).clone())
    }

    /// Sends a request; gives the body's stream, or what went wrong before it.
    pub(crate) async fn send(
        &self,
        transport: &HttpTransport,
        request: &WireRequest,
        asked: Asked<'_>,
    ) -> Result<reqwest::Response, Failure> {
        let url = format!("{}{}", transport.base_url, request.path);
        let broken = |cause: String| failure::connection(&cause, false, asked);
        let client = self.for_url(&url).map_err(broken)?;
        let pieces: Vec<Result<Bytes, std::convert::Infallible>> =
            request.body.iter().cloned().map(Ok).collect();
        let body = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
        let mut builder = client
            .post(&url)
            .header(CONTENT_TYPE, "application/json")
            .header("accept", "text/event-stream")
            .header(CONTENT_LENGTH, request.len());
        if !transport.query.is_empty() {
            let parsed = reqwest::Url::parse_with_params(&url, &transport.query)
                .map_err(|error| broken(error.to_string()))?;
            let (_, built) = builder.build_split();
            let mut built = built.map_err(|error| broken(error.to_string()))?;
            *built.url_mut() = parsed;
            builder = reqwest::RequestBuilder::from_parts(client.clone(), built);
        }
        if let Some(key) = &transport.key {
            builder = builder.header(
                "authorization",
                secret_header("Bearer ", key).map_err(broken)?,
            );
        }
        for (name, value) in &transport.headers {
            let name = HeaderName::try_from(name.as_str())
                .map_err(|_| broken(format!("\"{name}\" is not a header name")))?;
            builder = builder.header(name, secret_header("", value).map_err(broken)?);
        }
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let response = builder
            .body(body)
            .send()
            .await
            .map_err(|error| unreachable(&error, asked))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(refused(response, transport, asked).await)
    }
}

fn secret_header(prefix: &str, secret: &Secret) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::try_from(format!("{prefix}{}", secret.expose()))
        .map_err(|_| "the key holds characters that cannot be sent".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// The innermost cause says most: "connection refused", "certificate expired".
pub(crate) fn cause(error: &reqwest::Error) -> (String, bool) {
    let mut source: &dyn std::error::Error = error;
    let mut refused = false;
    while let Some(inner) = source.source() {
        source = inner;
        let io = source.downcast_ref::<std::io::Error>();
        refused |= io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused);
    }
    (source.to_string().to_lowercase(), refused)
}

fn unreachable(error: &reqwest::Error, asked: Asked<'_>) -> Failure {
    let (cause, refused) = cause(error);
    failure::connection(&cause, refused, asked)
}

async fn refused(
    mut response: reqwest::Response,
    transport: &HttpTransport,
    asked: Asked<'_>,
) -> Failure {
    let status = response.status().as_u16();
    let after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    let after = after.and_then(|header| retry::asked(header, std::time::SystemTime::now()));
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        body.extend_from_slice(&piece);
        if body.len() > ERROR_BODY {
            break;
        }
    }
    let mut text = String::from_utf8_lossy(&body).into_owned();
    // Providers quote the key that they refuse.
    for secret in transport
        .key
        .iter()
        .chain(transport.headers.iter().map(|(_, value)| value))
    {
        if secret.expose().len() >= 6 {
            text = text.replace(secret.expose(), "[secret]");
        }
    }
    failure::status(status, after, &text, asked)
}
