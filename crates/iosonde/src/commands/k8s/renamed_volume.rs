//! The name of a volume in the JSON document of a command, replaced by that of its target.
//!
//! The document is copied value by value, because its time series may be long: a tree of it takes
//! several times the memory of its text.

use serde::de::{self, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{self, Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::ser::Formatter;
use std::cell::Cell;
use std::fmt;
use std::io;

/// Returns the document in one line. Each string that is the name of the volume becomes the target.
pub(super) fn rename_volume(
    document: &str,
    volume: &str,
    target: &str,
) -> serde_json::Result<String> {
    let names = VolumeNames { volume, target };
    let mut source = serde_json::Deserializer::from_slice(document.as_bytes());
    let mut line = Vec::with_capacity(document.len());
    let mut sink = serde_json::Serializer::with_formatter(&mut line, LineFormatter);
    UnreadValue::new(&mut source, names).serialize(&mut sink)?;
    source.end()?;
    String::from_utf8(line).map_err(serde_json::Error::custom)
}

/// Name of a volume in the pod, and the target that it stands for.
#[derive(Clone, Copy)]
struct VolumeNames<'n> {
    volume: &'n str,
    target: &'n str,
}

impl VolumeNames<'_> {
    fn renamed<'t>(&'t self, text: &'t str) -> &'t str {
        match text == self.volume {
            true => self.target,
            false => text,
        }
    }
}

/// A value of the document, which is read when it is written.
struct UnreadValue<'n, D> {
    source: Cell<Option<D>>,
    names: VolumeNames<'n>,
}

impl<'n, D> UnreadValue<'n, D> {
    fn new(source: D, names: VolumeNames<'n>) -> Self {
        let source = Cell::new(Some(source));
        UnreadValue { source, names }
    }
}

impl<'de, D: Deserializer<'de>> Serialize for UnreadValue<'_, D> {
    fn serialize<S: Serializer>(&self, sink: S) -> Result<S::Ok, S::Error> {
        let Some(source) = self.source.take() else {
            return Err(ser::Error::custom("a value was written twice"));
        };
        let names = self.names;
        source
            .deserialize_any(ValueCopy { sink, names })
            .map_err(ser::Error::custom)
    }
}

/// Writes the value that it visits.
struct ValueCopy<'n, S> {
    sink: S,
    names: VolumeNames<'n>,
}

impl<'de, S: Serializer> Visitor<'de> for ValueCopy<'_, S> {
    type Value = S::Ok;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value of JSON")
    }

    fn visit_unit<E: de::Error>(self) -> Result<S::Ok, E> {
        self.sink.serialize_unit().map_err(E::custom)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<S::Ok, E> {
        self.sink.serialize_bool(value).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<S::Ok, E> {
        self.sink.serialize_i64(value).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<S::Ok, E> {
        self.sink.serialize_u64(value).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<S::Ok, E> {
        self.sink.serialize_f64(value).map_err(E::custom)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<S::Ok, E> {
        let text = self.names.renamed(text);
        self.sink.serialize_str(text).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<S::Ok, A::Error> {
        let names = self.names;
        let mut sink = self.sink.serialize_seq(None).map_err(A::Error::custom)?;
        let mut copied = Some(());
        while copied.is_some() {
            let sink = &mut sink;
            copied = source.next_element_seed(ElementCopy { sink, names })?;
        }
        sink.end().map_err(A::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<S::Ok, A::Error> {
        let names = self.names;
        let mut sink = self.sink.serialize_map(None).map_err(A::Error::custom)?;
        while let Some(key) = source.next_key::<String>()? {
            let key = names.renamed(&key);
            sink.serialize_key(key).map_err(A::Error::custom)?;
            let sink = &mut sink;
            source.next_value_seed(MemberCopy { sink, names })?;
        }
        sink.end().map_err(A::Error::custom)
    }
}

/// Writes the next element of an array.
struct ElementCopy<'s, 'n, Q> {
    sink: &'s mut Q,
    names: VolumeNames<'n>,
}

impl<'de, Q: SerializeSeq> DeserializeSeed<'de> for ElementCopy<'_, '_, Q> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        let element = UnreadValue::new(source, self.names);
        self.sink
            .serialize_element(&element)
            .map_err(D::Error::custom)
    }
}

/// Writes the value of a member of an object.
struct MemberCopy<'s, 'n, M> {
    sink: &'s mut M,
    names: VolumeNames<'n>,
}

impl<'de, M: SerializeMap> DeserializeSeed<'de> for MemberCopy<'_, '_, M> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        let value = UnreadValue::new(source, self.names);
        self.sink.serialize_value(&value).map_err(D::Error::custom)
    }
}

/// Writes a document in one line, with a blank after each colon.
struct LineFormatter;

impl Formatter for LineFormatter {
    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(document: &str) -> String {
        rename_volume(document, "/data/.iosonde-a", "sc://fast").unwrap()
    }

    #[test]
    fn document_names_the_target_instead_of_the_volume() {
        let text =
            "{\n  \"target\": \"/data/.iosonde-a\",\n  \"note\": \"in /data/.iosonde-a \"\n}\n";
        let expected = "{\"target\": \"sc://fast\",\"note\": \"in /data/.iosonde-a \"}";
        assert_eq!(renamed(text), expected);
    }

    #[test]
    fn volume_with_an_escape_in_its_json_string_is_renamed() {
        let text = "{\"target\": \"\\u002fdata\\/.iosonde-a\"}";
        assert_eq!(renamed(text), "{\"target\": \"sc://fast\"}");
    }

    #[test]
    fn other_values_and_order_of_a_document_stay() {
        let line = "{\"b\": [1,-2,0.1,2.0,true,null,[]],\"a\": {},\"c\": 18446744073709551615}";
        assert_eq!(renamed(line), line);
    }

    #[test]
    fn truncated_document_is_an_error() {
        assert!(rename_volume("{\"target\": ", "a", "b").is_err());
        assert!(rename_volume("{} {}", "a", "b").is_err());
    }
}
