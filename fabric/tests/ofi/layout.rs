//! The binding of libfabric against the installed headers: sizes, offsets, types, signatures and constants.
//!
//! A C program, written from the lists of the binding, says what the headers make of each name.

use pelago_fabric::ofi::sys::{CONSTANTS, Field, Kind, LAYOUTS, Layout};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The names that are enumerations in C; other names of libfabric are structures.
const ENUMERATIONS: [&str; 16] = [
    "fi_ep_type",
    "fi_threading",
    "fi_progress",
    "fi_resource_mgmt",
    "fi_av_type",
    "fi_bus_type",
    "fi_link_state",
    "fi_hmem_iface",
    "fi_collective_op",
    "fi_wait_obj",
    "fi_cq_format",
    "fi_cq_wait_cond",
    "fi_cntr_events",
    "fi_datatype",
    "fi_op",
    "fi_type",
];

const HEADERS: [&str; 7] =
    ["fabric", "fi_domain", "fi_endpoint", "fi_cm", "fi_rma", "fi_atomic", "fi_tagged"];

/// A type as C writes it; none for the one that has no name there.
fn in_c(rust: &str) -> Option<String> {
    if let Some(pointee) = rust.strip_prefix("*mut ") {
        return Some(format!("{} *", in_c(pointee)?));
    }
    if let Some(pointee) = rust.strip_prefix("*const ") {
        return Some(format!("{} const *", in_c(pointee)?));
    }
    if let Some((element, count)) =
        rust.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')?.split_once("; "))
    {
        return Some(format!("{}[{count}]", in_c(element)?));
    }
    let name = match rust {
        "u8" => "uint8_t",
        "u16" => "uint16_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        "isize" => "ssize_t",
        "c_int" => "int",
        "c_char" => "char",
        "c_void" => "void",
        "fi_addr_t" => "fi_addr_t",
        "fi_mr_device" | "fi_pci_attr" => return None,
        name if ENUMERATIONS.contains(&name) => return Some(format!("enum {name}")),
        name => return Some(format!("struct {name}")),
    };
    Some(name.to_owned())
}

/// The type of a field as C writes it.
fn type_of(field: &Field) -> Option<String> {
    match field.kind {
        Kind::Data(rust) => in_c(rust),
        Kind::Call { arguments, returns } => {
            let arguments: Option<Vec<_>> = arguments.iter().map(|rust| in_c(rust)).collect();
            Some(format!("{} (*)({})", in_c(returns)?, arguments?.join(", ")))
        }
    }
}

fn name_of(field: &Field) -> &str {
    field.name.trim_start_matches("r#")
}

fn layouts() -> impl Iterator<Item = &'static Layout> {
    LAYOUTS.iter().copied().flatten()
}

/// The program that prints a line for each name: what it is about, and numbers.
fn program() -> String {
    let mut text = String::from("#include <stdio.h>\n");
    for header in HEADERS {
        writeln!(text, "#include <rdma/{header}.h>").unwrap();
    }
    text.push_str("int main(void) {\n");
    text.push_str("printf(\"version %d\\n\", FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION));\n");
    for layout in layouts() {
        let name = layout.name;
        writeln!(text, "printf(\"{name} %zu\\n\", sizeof(struct {name}));").unwrap();
        for field in layout.fields {
            let place = format!("((struct {name} *)0)->{}", name_of(field));
            let fits = type_of(field).map_or("1".to_owned(), |of_c| {
                format!("__builtin_types_compatible_p(__typeof__({place}), {of_c})")
            });
            let (field, numbers) = (name_of(field), "%zu %zu %d");
            let offset = format!("offsetof(struct {name}, {field})");
            writeln!(text, "printf(\"{name}.{field} {numbers}\\n\", {offset}, sizeof({place}), {fits});")
                .unwrap();
        }
    }
    for (name, _) in CONSTANTS {
        writeln!(text, "printf(\"{name} %llu\\n\", (unsigned long long)({name}));").unwrap();
    }
    text.push_str("return 0;\n}\n");
    text
}

/// The values from the headers, by name.
fn headers() -> HashMap<String, Vec<u64>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, binary) = (folder.join("ofi_layout.c"), folder.join("ofi_layout"));
    std::fs::write(&source, program()).unwrap();
    let built = Command::new("gcc").arg("-o").arg(&binary).arg(&source).output().unwrap();
    let messages = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "gcc with libfabric's headers (Debian: libfabric-dev):\n{messages}");
    let output = Command::new(&binary).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let name = words.next().unwrap();
        (name, words.map(|word| word.parse().unwrap()).collect())
    };
    text.lines().map(line).collect()
}

#[test]
fn the_binding_is_that_of_the_headers() {
    let headers = headers();
    let is_same_version = headers["version"] == [(1 << 16) | 17];
    let mut differences = Vec::new();
    for layout in layouts() {
        let [bytes] = headers[layout.name][..] else { panic!("{}: not one number", layout.name) };
        let ours = layout.bytes as u64;
        if ours > bytes || (is_same_version && ours != bytes) {
            differences.push(format!("{}: {ours} bytes here, {bytes} in C", layout.name));
        }
        for field in layout.fields {
            let name = format!("{}.{}", layout.name, name_of(field));
            let [ours, of_c] = [&[field.offset_bytes as u64, field.bytes as u64, 1][..], &headers[&name]];
            if ours != of_c {
                let of = type_of(field);
                differences.push(format!("{name}, {of:?}: offset, size, fits: {ours:?} here, {of_c:?} in C"));
            }
        }
    }
    for (name, ours) in CONSTANTS {
        let [of_c] = headers[*name][..] else { panic!("{name}: not one number") };
        if *ours != of_c {
            differences.push(format!("{name}: {ours} here, {of_c} in C"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn the_lists_are_not_empty() {
    let fields: usize = layouts().map(|layout| layout.fields.len()).sum();
    assert!(layouts().count() > 30 && fields > 200 && CONSTANTS.len() > 150);
}
