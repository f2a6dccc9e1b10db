//! View_image: an image file as base64, known by its first bytes and not by its name.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use interpreter_messages::tool::{ToolOutput, ViewImage};

use super::error::OpError;
use super::load::{absolute, load};
use super::text::{TextFile, kind_of};

/// Largest image in bytes: 5 MiB, the smallest limit among the providers' APIs.
const MAX_IMAGE: u64 = 5 * 1024 * 1024;

/// Loads an image.
pub(crate) fn view_image(cwd: &Path, order: &ViewImage) -> Result<ToolOutput, OpError> {
    let path = absolute(cwd, &order.path)?;
    let bytes = load(&path)?.bytes;
    let kind = kind_of(&bytes);
    let mime = match kind {
        "a PNG image" => "image/png",
        "a JPEG image" => "image/jpeg",
        "a GIF image" => "image/gif",
        "a WebP image" => "image/webp",
        _ => {
            let kind = match TextFile::parse(&bytes) {
                Some(_) if bytes.is_empty() => "an empty file",
                Some(file) if !file.lossy() => "text",
                _ => kind,
            };
            return Err(OpError::NotAnImage { path, kind });
        }
    };
    let size = bytes.len() as u64;
    if size > MAX_IMAGE {
        return Err(OpError::TooLarge {
            path,
            size,
            limit: MAX_IMAGE,
        });
    }
    Ok(ToolOutput::Image {
        path,
        mime: mime.to_owned(),
        data: Arc::from(base64::engine::general_purpose::STANDARD.encode(&bytes)),
    })
}
