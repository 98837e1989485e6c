//! A compiled protobuf package as rows of the golden table.
//!
//! Owns the row form: what of a declaration counts as the wire contract. It must not know any message of the
//! CRI. Comments, file layout and the order of declarations are no part of it. It cannot fail.

use std::collections::BTreeSet;

use prost_reflect::{
    DescriptorPool, EnumDescriptor, EnumValueDescriptor, FieldDescriptor, Kind, MessageDescriptor,
    MethodDescriptor, ServiceDescriptor,
};

/// All rows of one package.
pub(crate) fn of_package(pool: &DescriptorPool, package: &str) -> BTreeSet<String> {
    let mut rows = BTreeSet::new();
    for service in pool.services().filter(|s| s.package_name() == package) {
        rows.extend(service.methods().map(|method| rpc_row(&service, &method)));
    }
    for message in pool.all_messages().filter(|m| m.package_name() == package) {
        if !message.is_map_entry() {
            rows.extend(message_rows(&message));
        }
    }
    for r#enum in pool.all_enums().filter(|e| e.package_name() == package) {
        rows.extend(enum_rows(&r#enum));
    }
    rows
}

fn rpc_row(service: &ServiceDescriptor, method: &MethodDescriptor) -> String {
    let side = |streamed: bool, message: MessageDescriptor| {
        let stream = if streamed { "stream " } else { "" };
        format!(
            "{stream}{}",
            short_name(message.full_name(), message.package_name())
        )
    };
    let request = side(method.is_client_streaming(), method.input());
    let answer = side(method.is_server_streaming(), method.output());
    let options = &method.method_descriptor_proto().options;
    let note = note(options.as_ref().is_some_and(|o| o.deprecated()));
    format!(
        "rpc\t{}\t{}\t{request}\t{answer}{note}",
        service.name(),
        method.name()
    )
}

/// One row per field. A message without fields, or a deprecated one, has a row of its own.
fn message_rows(message: &MessageDescriptor) -> Vec<String> {
    let owner = short_name(message.full_name(), message.package_name());
    let options = &message.descriptor_proto().options;
    let deprecated = options.as_ref().is_some_and(|o| o.deprecated());
    let mut rows: Vec<_> = message
        .fields()
        .map(|field| field_row(owner, &field))
        .collect();
    if rows.is_empty() || deprecated {
        rows.push(format!("message\t{owner}{}", note(deprecated)));
    }
    rows
}

fn field_row(owner: &str, field: &FieldDescriptor) -> String {
    let options = &field.field_descriptor_proto().options;
    let note = note(options.as_ref().is_some_and(|o| o.deprecated()));
    format!(
        "field\t{owner}\t{}\t{}\t{}{note}",
        field.name(),
        field.number(),
        field_type(field)
    )
}

fn enum_rows(r#enum: &EnumDescriptor) -> Vec<String> {
    let owner = short_name(r#enum.full_name(), r#enum.package_name());
    let row = |value: EnumValueDescriptor| {
        let options = &value.enum_value_descriptor_proto().options;
        let note = note(options.as_ref().is_some_and(|o| o.deprecated()));
        format!("enum\t{owner}\t{}\t{}{note}", value.name(), value.number())
    };
    r#enum.values().map(row).collect()
}

fn field_type(field: &FieldDescriptor) -> String {
    if let (true, Kind::Message(entry)) = (field.is_map(), field.kind()) {
        let key = kind_name(&entry.map_entry_key_field().kind());
        let value = kind_name(&entry.map_entry_value_field().kind());
        return format!("map<{key},{value}>");
    }
    let kind = kind_name(&field.kind());
    match field.containing_oneof() {
        _ if field.is_list() => format!("repeated {kind}"),
        Some(_) if field.field_descriptor_proto().proto3_optional() => format!("optional {kind}"),
        Some(oneof) => format!("oneof {} {kind}", oneof.name()),
        None => kind,
    }
}

fn kind_name(kind: &Kind) -> String {
    match kind {
        Kind::Message(message) => {
            short_name(message.full_name(), message.package_name()).to_owned()
        }
        Kind::Enum(r#enum) => short_name(r#enum.full_name(), r#enum.package_name()).to_owned(),
        Kind::Double => "double".to_owned(),
        Kind::Float => "float".to_owned(),
        Kind::Int32 => "int32".to_owned(),
        Kind::Int64 => "int64".to_owned(),
        Kind::Uint32 => "uint32".to_owned(),
        Kind::Uint64 => "uint64".to_owned(),
        Kind::Sint32 => "sint32".to_owned(),
        Kind::Sint64 => "sint64".to_owned(),
        Kind::Fixed32 => "fixed32".to_owned(),
        Kind::Fixed64 => "fixed64".to_owned(),
        Kind::Sfixed32 => "sfixed32".to_owned(),
        Kind::Sfixed64 => "sfixed64".to_owned(),
        Kind::Bool => "bool".to_owned(),
        Kind::String => "string".to_owned(),
        Kind::Bytes => "bytes".to_owned(),
    }
}

/// The name within its package: nested types keep their parent (`SecurityProfile.ProfileType`).
fn short_name<'a>(full_name: &'a str, package: &str) -> &'a str {
    full_name
        .strip_prefix(package)
        .and_then(|rest| rest.strip_prefix('.'))
        .unwrap_or(full_name)
}

fn note(deprecated: bool) -> &'static str {
    if deprecated { "\tdeprecated" } else { "" }
}
