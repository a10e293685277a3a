//! `mpi.h`: written from the table of MPI's interface (`mpi/src/api`), its constants and handles
//! (`mpi/src/abi`), and a template with the types (`mpi/include/mpi.h.in`).
//!
//! Invariant: the library is compiled from the same files, so that header and library agree. Every file of
//! `mpi/src/api` is a chapter: none has to be listed here.

use std::fs;

use anyhow::{Context, Result, bail, ensure};

use super::fill;
use super::prototype::{declare, pointer};
use crate::workspace::root;

const TEMPLATE: &str = include_str!("../../../mpi/include/mpi.h.in");

/// The function whose further arguments Rust cannot declare; the library ignores them.
const VARIADIC: &str = "MPI_Pcontrol";

/// One function, in one form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Function {
    name: String,
    /// Its type and its arguments, in C.
    result: String,
    arguments: String,
}

impl Function {
    fn prototype(&self, prefix: &str) -> String {
        format!("{}({});", declare(&self.result, &format!("{prefix}{}", self.name)), self.arguments)
    }
}

/// A line of the table.
struct Line<'a> {
    kind: &'a str,
    name: &'a str,
    arguments: Vec<(&'a str, &'a str)>,
    result: &'a str,
}

/// A constant: its name, its type and its value, in Rust.
struct Constant<'a> {
    name: &'a str,
    of: &'a str,
    value: &'a str,
}

/// The text of `mpi.h`.
pub fn text() -> Result<String> {
    let text = constants_and_handles(TEMPLATE)?;
    let (mut prototypes, mut profiling) = (String::new(), String::new());
    for (chapter, functions) in chapters()? {
        prototypes += &format!("\n/* {} */\n", title(&chapter));
        for function in functions {
            prototypes += &(function.prototype("") + "\n");
            profiling += &(function.prototype("P") + "\n");
        }
    }
    fill(&fill(&text, "@PROTOTYPES@", &prototypes)?, "@PROFILING@", &profiling)
}

/// Every function of the library under both of its names, sorted.
pub fn symbols() -> Result<Vec<String>> {
    let functions = chapters()?.into_iter().flat_map(|(_, functions)| functions);
    let mut symbols: Vec<_> =
        functions.flat_map(|function| [format!("P{}", function.name), function.name]).collect();
    symbols.sort_unstable();
    let count = symbols.len();
    symbols.dedup();
    ensure!(symbols.len() == count, "the table in mpi/src/api has {} names twice", count - symbols.len());
    Ok(symbols)
}

/// The functions of each chapter, in the order of the names of the files.
fn chapters() -> Result<Vec<(String, Vec<Function>)>> {
    let folder = root().join("mpi/src/api");
    let mut chapters = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if name != "mod" {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let functions = functions(&text).with_context(|| format!("mpi/src/api/{name}.rs"))?;
            chapters.push((name, functions));
        }
    }
    chapters.sort();
    Ok(chapters)
}

/// The functions of the text of a chapter.
fn functions(text: &str) -> Result<Vec<Function>> {
    let without_comments: String =
        text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    let (_, table) = without_comments.split_once("api! {").context("there is no table")?;
    let table = table.trim_end().strip_suffix('}').context("the table does not end the file")?;
    let mut functions = Vec::new();
    for line in split(table, ';').into_iter().map(str::trim).filter(|line| !line.is_empty()) {
        let found = parse(line).with_context(|| format!("no line of the table: {line}"))?;
        functions.extend(forms(&found).with_context(|| found.name.to_owned())?);
    }
    Ok(functions)
}

/// The parts of a text between separators that are in no brackets.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ if letter == separator && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// `kind NAME(argument: type, ...) -> result => body`.
fn parse(line: &str) -> Option<Line<'_>> {
    let (head, _) = line.rsplit_once("=>")?;
    let (kind_and_name, rest) = head.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(')')?;
    let (kind, name) = kind_and_name.trim().split_once(char::is_whitespace)?;
    let arguments = split(arguments, ',').into_iter().map(str::trim).filter(|argument| !argument.is_empty());
    let arguments = arguments.map(|argument| {
        let (name, of) = argument.split_once(':')?;
        Some((name.trim(), of.trim()))
    });
    let result = result.trim().strip_prefix("->").map_or("", str::trim);
    Some(Line { kind, name: name.trim(), arguments: arguments.collect::<Option<_>>()?, result })
}

/// The forms of a line, as `mpi/src/expand.rs` makes them.
fn forms(line: &Line<'_>) -> Result<Vec<Function>> {
    let name = line.name.to_owned();
    match (line.kind, line.result) {
        ("call" | "early" | "tool" | "tool_early", "") => Ok(vec![form(name, line, "int", false)?]),
        ("large" | "large_early", "") => {
            Ok(vec![form(name.clone(), line, "int", false)?, form(name + "_c", line, "int", true)?])
        }
        ("value", result) if !result.is_empty() => {
            Ok(vec![form(name, line, &c_type(result, false)?, false)?])
        }
        (kind, _) => bail!("{kind} is no kind of function, or it has a result that it should not have"),
    }
}

fn form(name: String, line: &Line<'_>, result: &str, is_large: bool) -> Result<Function> {
    let mut arguments = Vec::new();
    for &(argument, of) in &line.arguments {
        let argument = argument.trim_start_matches("r#");
        arguments.push(match of {
            "*mut [c_int; 3]" => format!("int {argument}[][3]"),
            _ => declare(&c_type(of, is_large)?, argument),
        });
    }
    if name == VARIADIC {
        arguments = vec!["const int level".to_owned(), "...".to_owned()];
    }
    let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") };
    Ok(Function { name, result: result.to_owned(), arguments })
}

/// The types that differ between the two forms of a function, in Rust, and in C in the usual and the large
/// form (`mpi/src/convert.rs`).
const FORMS: [(&str, &str, &str); 10] = [
    ("Count", "int", "MPI_Count"),
    ("Aint", "MPI_Aint", "MPI_Count"),
    ("DispUnit", "int", "MPI_Aint"),
    ("Counts", "const int *", "const MPI_Count *"),
    ("Displs", "const int *", "const MPI_Aint *"),
    ("Aints", "const MPI_Aint *", "const MPI_Count *"),
    ("CountOut", "int *", "MPI_Count *"),
    ("AintOut", "MPI_Aint *", "MPI_Count *"),
    ("DispUnitOut", "int *", "MPI_Aint *"),
    ("UserFunction", "MPI_User_function *", "MPI_User_function_c *"),
];

/// The same, where a type of the C interface is longer than a line of the table above.
const CONVERSION: (&str, &str, &str) =
    ("ConversionFunction", "MPI_Datarep_conversion_function *", "MPI_Datarep_conversion_function_c *");

/// A type in C.
fn c_type(of: &str, is_large: bool) -> Result<String> {
    let of = of.trim();
    if let Some(target) = of.strip_prefix("*mut ") {
        return Ok(pointer(&c_type(target, is_large)?));
    }
    if let Some(target) = of.strip_prefix("*const ") {
        let inner = c_type(target, is_large)?;
        return Ok(match inner.ends_with('*') {
            true => pointer(&format!("{inner}const ")),
            false => pointer(&format!("const {inner}")),
        });
    }
    if let Some((_, small, large)) = FORMS.iter().chain([&CONVERSION]).find(|(name, ..)| *name == of) {
        return Ok((if is_large { large } else { small }).to_string());
    }
    Ok(match of {
        "c_int" => "int",
        "c_char" => "char",
        "c_void" => "void",
        "f64" => "double",
        _ if of.starts_with("MPI_") => of,
        _ => bail!("{of} is no type of the table; those are listed in xtask/src/header/mpi.rs"),
    }
    .to_owned())
}

fn title(chapter: &str) -> String {
    match chapter {
        "p2p" => "Point-to-point communication",
        "collective" => "Collective operations",
        "comm" => "Communicators",
        "datatype" => "Datatypes",
        "errhandler" => "Error handlers",
        "file" => "Files",
        "generalized" => "Generalized requests",
        "group" => "Groups",
        "integer" => "Handles as integers",
        "op" => "Operations of reductions",
        "request" => "Requests and statuses",
        "setup" => "Initialization and inquiries",
        "session" => "Sessions",
        "tool" => "Tools",
        "topology" => "Topologies",
        "win" => "One-sided communication",
        other => return other[..1].to_uppercase() + &other[1..].replace('_', " "),
    }
    .to_owned()
}

/// Fills in what comes from `mpi/src/abi`.
fn constants_and_handles(template: &str) -> Result<String> {
    let read = |name: &str| {
        let path = root().join("mpi/src/abi").join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (types, values) = (read("types.rs")?, read("constants.rs")?);
    let (_, handles) = types.split_once("\nhandles! {").context("types.rs has no handles")?;
    let handles = handles.split('}').next().unwrap_or_default().split_whitespace();
    let handles: String = handles.map(|name| format!("typedef struct {name}_object *{name};\n")).collect();
    let (mut lists, mut defines) = ([const { Vec::new() }; 3], [String::new(), String::new()]);
    for constant in constants(&values)? {
        let Constant { name, value, .. } = constant;
        let is_number = constant.of == "c_int";
        match name {
            _ if !is_number => defines[1] += &format!("#define {name} {}\n", c_value(&constant)?),
            _ if is_of_preprocessor(name) => defines[0] += &format!("#define {name} {value}\n"),
            _ if name.starts_with("MPI_T_CB_REQUIRE_") => lists[1].push(format!("    {name} = {value}")),
            _ if name.starts_with("MPI_T_SOURCE_") => lists[2].push(format!("    {name} = {value}")),
            _ => lists[0].push(format!("    {name} = {value}")),
        }
    }
    let mut text = fill(template, "@HANDLES@", &handles)?;
    for (mark, list) in ["@ENUM@", "@CB_SAFETY@", "@SOURCE_ORDER@"].into_iter().zip(lists) {
        text = fill(&text, mark, &(list.join(",\n") + "\n"))?;
    }
    fill(&fill(&text, "@DEFINES@", &defines[0])?, "@CONSTANTS@", &defines[1])
}

/// Whether a number is a constant of the preprocessor, as the standard has it, and not one of an `enum`.
fn is_of_preprocessor(name: &str) -> bool {
    name.ends_with("VERSION") || name.starts_with("MPI_MAX_") || name == "MPI_BSEND_OVERHEAD"
}

/// The constants of `constants.rs`.
fn constants(text: &str) -> Result<Vec<Constant<'_>>> {
    let items = text.split("pub const ").skip(1);
    let parsed = items.map(|item| {
        let (name, rest) = item.split_once(':')?;
        let (of, rest) = rest.split_once('=')?;
        Some(Constant { name, of: of.trim(), value: rest.split_once(';')?.0.trim() })
    });
    parsed.collect::<Option<_>>().context("constants.rs has a line that is no constant")
}

/// The value of a constant that is no `int`.
fn c_value(constant: &Constant<'_>) -> Result<String> {
    let Constant { name, of, value } = *constant;
    let inner = value.split_once('(').map(|(_, inner)| inner.trim_end_matches(')'));
    Ok(match inner {
        Some(number) => format!("(({}){number})", c_type(of, false)?),
        None if value.starts_with("MPI_") => value.to_owned(),
        None if value.parse::<i64>().is_ok() => format!("(({of}){value})"),
        None => bail!("{name} has the value {value}, which has no form in C"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "
//! A chapter.
api! {
    large MPI_Send(buf: *const c_void, count: Count, r#type: MPI_Datatype) => crate::p2p::send; // one
    early MPI_Ranges(ranges: *mut [c_int; 3],
        argv: *mut *mut *mut c_char) => crate::a::ranges;
    value MPI_Wtime() -> f64 => crate::a::wtime;
    call MPI_Pcontrol(level: c_int) => crate::a::pcontrol;
    large MPI_Many(counts: Counts, displs: Displs, requests: *const MPI_Request, at: CountOut)
        => crate::a::many;
}
";

    #[test]
    fn lines_become_prototypes() {
        let prototypes: Vec<_> =
            functions(TABLE).unwrap().iter().map(|function| function.prototype("P")).collect();
        assert_eq!(
            prototypes,
            [
                "int PMPI_Send(const void *buf, int count, MPI_Datatype type);",
                "int PMPI_Send_c(const void *buf, MPI_Count count, MPI_Datatype type);",
                "int PMPI_Ranges(int ranges[][3], char ***argv);",
                "double PMPI_Wtime(void);",
                "int PMPI_Pcontrol(const int level, ...);",
                "int PMPI_Many(const int *counts, const int *displs, const MPI_Request *requests, int *at);",
                "int PMPI_Many_c(const MPI_Count *counts, const MPI_Aint *displs, \
                 const MPI_Request *requests, MPI_Count *at);",
            ]
        );
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for line in ["call MPI_X(a: usize) => b", "wrong MPI_X() => b", "value MPI_X() => b", "MPI_X() => b"]
        {
            assert!(functions(&format!("api! {{ {line}; }}")).is_err(), "{line}");
        }
        assert!(functions("no table").is_err());
    }

    #[test]
    fn constants_have_their_forms_in_c() {
        let text = "pub const MPI_SUM: MPI_Op = MPI_Op(0x21);\npub const MPI_X: *mut c_void =\n    \
                    std::ptr::without_provenance_mut(1);\npub const MPI_D: MPI_Offset = -1;\n\
                    pub const MPI_L: MPI_Datatype = MPI_LONG;";
        let found: Vec<_> =
            constants(text).unwrap().iter().map(|constant| c_value(constant).unwrap()).collect();
        assert_eq!(found, ["((MPI_Op)0x21)", "((void *)1)", "((MPI_Offset)-1)", "MPI_LONG"]);
    }

    #[test]
    fn every_mark_of_the_template_is_filled_in() {
        let text = text().unwrap();
        assert!(!text.contains('@'));
        for part in
            ["int MPI_Init(int *argc, char ***argv);", "#define MPI_VERSION 5\n", "MPI_SUCCESS = 0,\n"]
        {
            assert!(text.contains(part), "{part}");
        }
    }
}
