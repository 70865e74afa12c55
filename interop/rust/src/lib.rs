//! Requests whose composite metadata contains the route.

use bytes::BytesMut;
use rsocket_rust::extension::{CompositeMetadata, MimeType, RoutingMetadata};
use rsocket_rust::prelude::*;
use rsocket_rust::utils::Writeable;

pub const FRAGMENT_BYTES: usize = 64 * 1024;

/// Returns the first tag of the routing entry, or "" if there is none.
pub fn route_of(payload: &Payload) -> String {
    let mut metadata = BytesMut::from(payload.metadata().map_or(&b""[..], |bytes| bytes));
    let Ok(entries) = CompositeMetadata::decode(&mut metadata) else {
        return String::new();
    };
    let routing = entries
        .iter()
        .find(|entry| *entry.get_mime_type() == MimeType::MESSAGE_X_RSOCKET_ROUTING_V0);
    routing
        .and_then(|entry| RoutingMetadata::decode(&mut BytesMut::from(&entry.get_metadata()[..])).ok())
        .and_then(|tags| tags.get_tags().first().cloned())
        .unwrap_or_default()
}

/// Returns a request for `route`; `note` becomes a second entry of the metadata.
pub fn request(route: &str, data: impl Into<Vec<u8>>, note: Option<&str>) -> Payload {
    let tags = RoutingMetadata::builder().push_str(route).build();
    let mut entries = CompositeMetadata::builder().push(MimeType::MESSAGE_X_RSOCKET_ROUTING_V0, tags.bytes());
    if let Some(note) = note {
        entries = entries.push(MimeType::TEXT_PLAIN, note);
    }
    Payload::builder().set_data(data).set_metadata(entries.build()).build()
}

/// Returns the data as text; absent data is "".
pub fn text_of(payload: &Payload) -> String {
    String::from_utf8_lossy(payload.data().map_or(&b""[..], |bytes| bytes)).into_owned()
}

/// Returns a payload without metadata.
pub fn item(data: impl Into<Vec<u8>>) -> Payload {
    Payload::builder().set_data(data).build()
}
