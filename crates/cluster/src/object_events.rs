//! The events of watched objects.

use futures::StreamExt;
use futures::stream::BoxStream;
use kube::Resource;
use kube::api::{Api, WatchEvent, WatchParams};
use kube::core::Request;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Events of one watch, until it ends.
pub(crate) type ObjectEvents<K> = BoxStream<'static, kube::Result<WatchEvent<K>>>;

/// Watches objects from a version on, as [`Api::watch`] does. That one reads the objects of events
/// from buffered members, and lists from text, so the program would contain two readers of each
/// kind. Here both are read from text.
///
/// # Errors
/// If the server does not accept the watch.
pub(crate) async fn watch_events<K>(
    api: &Api<K>,
    params: &WatchParams,
    version: &str,
) -> kube::Result<ObjectEvents<K>>
where
    K: Resource + Clone + DeserializeOwned + 'static,
{
    let mut request = Request::new(api.resource_url())
        .watch(params, version)
        .map_err(kube::Error::BuildRequest)?;
    // kube names the request so in its traces.
    request.extensions_mut().insert("watch");
    let client = api.clone().into_client();
    let events = client.request_events::<Value>(request).await?;
    Ok(events.map(|event| event.and_then(read_event)).boxed())
}

/// Reads the object of an event.
fn read_event<K: DeserializeOwned>(event: WatchEvent<Value>) -> kube::Result<WatchEvent<K>> {
    let read = |object: Value| read_object(&object).map_err(kube::Error::SerdeError);
    Ok(match event {
        WatchEvent::Added(object) => WatchEvent::Added(read(object)?),
        WatchEvent::Modified(object) => WatchEvent::Modified(read(object)?),
        WatchEvent::Deleted(object) => WatchEvent::Deleted(read(object)?),
        WatchEvent::Bookmark(bookmark) => WatchEvent::Bookmark(bookmark),
        WatchEvent::Error(status) => WatchEvent::Error(status),
    })
}

/// Reads an object through its text: kube's calls have the same reader.
pub(crate) fn read_object<K: DeserializeOwned>(object: &Value) -> serde_json::Result<K> {
    serde_json::from_str(&object.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    fn event(kind: &str, object: Value) -> kube::Result<WatchEvent<Pod>> {
        read_event(serde_json::from_value(json!({"type": kind, "object": object})).unwrap())
    }

    #[test]
    fn event_of_each_kind_keeps_its_kind_and_object() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
        let name = |pod: Pod| pod.metadata.name.unwrap();
        match event("ADDED", pod.clone()).unwrap() {
            WatchEvent::Added(pod) => assert_eq!(name(pod), "p"),
            other => panic!("{other:?}"),
        }
        match event("MODIFIED", pod.clone()).unwrap() {
            WatchEvent::Modified(pod) => assert_eq!(name(pod), "p"),
            other => panic!("{other:?}"),
        }
        match event("DELETED", pod).unwrap() {
            WatchEvent::Deleted(pod) => assert_eq!(name(pod), "p"),
            other => panic!("{other:?}"),
        }
        let bookmark = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"resourceVersion": "7"}});
        match event("BOOKMARK", bookmark).unwrap() {
            WatchEvent::Bookmark(read) => assert_eq!(read.metadata.resource_version, "7"),
            other => panic!("{other:?}"),
        }
        match event("ERROR", json!({"kind": "Status", "code": 410})).unwrap() {
            WatchEvent::Error(status) => assert_eq!(status.code, 410),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn object_of_another_form_is_an_error() {
        let error = event("ADDED", json!({"metadata": {"name": 7}})).unwrap_err();
        assert!(matches!(error, kube::Error::SerdeError(_)), "{error}");
    }
}
