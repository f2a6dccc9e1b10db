//! A scripted model server on loopback: one answer per request, in order, over real HTTP/1.1 with kept connections.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the server does with one request.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Extra headers.
    pub headers: Vec<(String, String)>,
    /// Pieces of the body, each after a wait.
    pub pieces: Vec<(Duration, Vec<u8>)>,
    /// How it ends.
    pub end: End,
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// As HTTP wants it.
    Clean,
    /// The connection is closed in the middle of the body.
    Cut,
    /// Nothing more comes, but the connection stays open this long.
    Hold(Duration),
}

impl Answer {
    /// A 200 with an event stream in one piece.
    pub fn sse(body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            pieces: vec![(Duration::ZERO, body.into())],
            end: End::Clean,
        }
    }

    /// Any status with a JSON body.
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            pieces: vec![(Duration::ZERO, body.to_string().into_bytes())],
            end: End::Clean,
        }
    }

    /// A chat answer that says `text`.
    pub fn text(text: &str) -> Self {
        Self::sse(format!(
            "{}{}{}data: [DONE]\n\n",
            event(
                &serde_json::json!({"choices":[{"index":0,"delta":{"role":"assistant","content":text}}]})
            ),
            event(&serde_json::json!({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})),
            event(
                &serde_json::json!({"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":2}})
            ),
        ))
    }

    /// A chat answer that makes one call.
    pub fn call(id: &str, name: &str, arguments: &serde_json::Value) -> Self {
        let call = serde_json::json!({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":id,"type":"function",
            "function":{"name":name,"arguments":arguments.to_string()}}]}}]});
        let finish =
            serde_json::json!({"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]});
        Self::sse(format!(
            "{}{}data: [DONE]\n\n",
            event(&call),
            event(&finish)
        ))
    }
}

/// One server-sent event.
pub fn event(data: &serde_json::Value) -> String {
    format!("data: {data}\n\n")
}

/// What the server saw.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Method and path.
    pub line: String,
    /// Header names (lower case) and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Seen {
    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("a request body is JSON")
    }
}

/// The running server; it ends with the process.
pub struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    model: Box<dyn FnMut(&Seen) -> Answer + Send>,
    seen: Vec<Seen>,
}

impl Server {
    /// Starts a server that gives these answers, then 500s.
    pub fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let mut answers: std::collections::VecDeque<_> = answers.into_iter().collect();
        let none_left = || {
            Answer::json(
                500,
                &serde_json::json!({"error":{"message":"the test's script is used up"}}),
            )
        };
        Self::answering(move |_| answers.pop_front().unwrap_or_else(none_left))
    }

    /// Starts a server that answers by what it is asked.
    pub fn answering(model: impl FnMut(&Seen) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener
            .local_addr()
            .expect("a bound listener has an address");
        let state = Arc::new(Mutex::new(State {
            model: Box::new(model),
            seen: Vec::new(),
        }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                // A client that goes away in mid-answer is a part of many tests.
                std::thread::spawn(move || drop(serve(stream, &state)));
            }
        });
        Self { address, state }
    }

    /// `http://127.0.0.1:PORT/v1`
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// All requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.state
            .lock()
            .expect("no panic holds the lock")
            .seen
            .clone()
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    while let Some(request) = read_request(&mut reader)? {
        let answer = {
            let mut state = state.lock().expect("no panic holds the lock");
            let answer = (state.model)(&request);
            state.seen.push(request);
            answer
        };
        if !write_answer(&mut writer, &answer)? {
            return Ok(());
        }
    }
    Ok(())
}

fn read_request(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Seen>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok(Some(Seen {
        line: line.trim_end().to_owned(),
        headers,
        body,
    }))
}

/// Writes an answer; false when the connection is used up.
fn write_answer(writer: &mut TcpStream, answer: &Answer) -> std::io::Result<bool> {
    let mut head = format!(
        "HTTP/1.1 {} scripted\r\ntransfer-encoding: chunked\r\n",
        answer.status
    );
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    writer.write_all(head.as_bytes())?;
    for (wait, piece) in &answer.pieces {
        std::thread::sleep(*wait);
        if piece.is_empty() {
            continue;
        }
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend_from_slice(piece);
        chunk.extend_from_slice(b"\r\n");
        writer.write_all(&chunk)?;
    }
    match answer.end {
        End::Clean => writer.write_all(b"0\r\n\r\n").map(|()| true),
        End::Cut => Ok(false),
        End::Hold(time) => {
            std::thread::sleep(time);
            Ok(false)
        }
    }
}
