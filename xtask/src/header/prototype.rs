//! Functions and their prototypes: a family of the table becomes one function for each row of its table of
//! types and for each form.
//!
//! Invariant: only the keywords that `shmem/src/expand.rs` defines are known; any other is an error that
//! names the line. Source of the C types: OpenSHMEM 1.6, chapter 9.

use std::fmt::Write;

use anyhow::{Context, Result, bail};

use super::table::{CHAPTERS, Family};

/// Names of arguments whose spelling in the standard differs from Rust's conventions.
const SPELLINGS: [(&str, &str); 6] = [
    ("pe_root", "PE_root"),
    ("pe_start", "PE_start"),
    ("log_pe_stride", "logPE_stride"),
    ("pe_size", "PE_size"),
    ("psync", "pSync"),
    ("pwrk", "pWrk"),
];

/// The functions of one chapter.
pub struct Chapter {
    pub name: &'static str,
    pub functions: Vec<Function>,
}

/// One function of the interface.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    pub arguments: Vec<Argument>,
    pub result: String,
    pub is_deprecated: bool,
    /// The generic name that selects it, if there is one.
    pub choice: Option<Choice>,
    pub home: Home,
}

/// The header file that declares a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// A function of the standard, in `shmem.h`.
    Standard,
    /// An extension that `shmem.h` declares because a generic name of the standard selects it.
    Joined,
    /// An extension, in `shmemx.h`.
    Extension,
}

/// How a generic name selects a function.
#[derive(Clone, Debug)]
pub struct Choice {
    pub generic: String,
    /// The type of its elements.
    pub c_type: &'static str,
    /// Whether a context is the first argument.
    pub is_with_context: bool,
    /// Whether there is a form with a context.
    pub has_context_form: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    pub name: String,
    /// The C type, with a `*` at its end if it is a pointer.
    pub c_type: String,
    /// Whether it is a pointer to elements of the type that the function is named after.
    pub is_to_elements: bool,
}

/// All functions of the table.
pub fn chapters() -> Result<Vec<Chapter>> {
    CHAPTERS.iter().map(|&(name, families)| chapter(name, families)).collect()
}

fn chapter(name: &'static str, families: &[Family]) -> Result<Chapter> {
    let functions = families.iter().map(|family| {
        functions(family)
            .with_context(|| format!("shmem/src/api/{name}.rs, {} {:?}", family.kind, family.name))
    });
    Ok(Chapter { name, functions: functions.collect::<Result<Vec<_>>>()?.concat() })
}

/// The prototypes of all functions of one header file, with `prefix` before their names.
pub fn text(chapters: &[Chapter], prefix: &str, home: Home) -> String {
    let mut text = String::new();
    for Chapter { name, functions } in chapters {
        let mut functions = functions.iter().filter(|function| function.home == home).peekable();
        if functions.peek().is_some() {
            let _ = writeln!(text, "\n/* {} */", title(name, home));
        }
        let mut was_deprecated = false;
        for function in functions {
            if function.is_deprecated && !was_deprecated {
                text.push_str("/* Deprecated: */\n");
            }
            was_deprecated = function.is_deprecated;
            if function.name == "shmem_global_exit" {
                text.push_str("PELAGO_NORETURN ");
            }
            let _ = writeln!(text, "{};", function.prototype(prefix));
        }
    }
    text
}

fn title(chapter: &str, home: Home) -> String {
    match chapter {
        "extension" if home == Home::Joined => "Extensions that generic names of the standard stand for too",
        "extension" => "Extensions",
        "setup" => "Library setup, exit and query",
        "memory" => "Memory management",
        "team" => "Teams",
        "ctx" | "context" => "Contexts",
        "rma" => "Remote memory access",
        "strided" => "Strided remote memory access",
        "amo" => "Atomic memory operations",
        "signal" => "Signaling operations",
        "collective" => "Collective operations",
        "active_set" => "Collective operations on active sets",
        "p2p" => "Point-to-point synchronization",
        "order" => "Memory ordering",
        "lock" => "Distributed locking",
        "session" => "Sessions",
        other => other,
    }
    .to_owned()
}

impl Function {
    /// The prototype, with `prefix` before the name and without a semicolon.
    pub fn prototype(&self, prefix: &str) -> String {
        let arguments: Vec<_> = self.arguments.iter().map(Argument::declaration).collect();
        let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") };
        format!("{}({arguments})", declare(&self.result, &format!("{prefix}{}", self.name)))
    }
}

impl Argument {
    pub fn declaration(&self) -> String {
        declare(&self.c_type, &self.name)
    }
}

/// A declaration of `name` with a type.
pub fn declare(c_type: &str, name: &str) -> String {
    let gap = if c_type.ends_with('*') { "" } else { " " };
    format!("{c_type}{gap}{name}")
}

/// The functions of a family.
fn functions(family: &Family) -> Result<Vec<Function>> {
    let Family { kind, name, suffix, .. } = *family;
    match (kind, family.rows.is_empty()) {
        ("named", true) => Ok(vec![form(family, name.to_owned(), None, None)?]),
        ("plain", true) => forms(family, name, None),
        ("typed" | "generic" | "joined" | "sized", false) => {
            let (before, after) = if kind == "sized" { (name, suffix) } else { ("", name) };
            let rows = family.rows.iter().map(|row| {
                let element = if kind == "sized" { "void" } else { row.c_type };
                forms(family, &format!("{before}{}{after}", row.part), Some(element))
            });
            Ok(rows.collect::<Result<Vec<_>>>()?.concat())
        }
        _ => bail!("{kind} is no kind of family, or one that goes with a table of types where there is none"),
    }
}

/// The forms of a function, without and with a context.
fn forms(family: &Family, name: &str, c_type: Option<&'static str>) -> Result<Vec<Function>> {
    let prefix = family.prefix();
    let plain = form(family, format!("{prefix}_{name}"), c_type, None)?;
    match family.scope {
        "only" | "foreign" | "extra" | "foreign_extra" => Ok(vec![plain]),
        "both" | "foreign_both" | "extra_both" => {
            let context =
                Argument { name: "ctx".to_owned(), c_type: "shmem_ctx_t".to_owned(), is_to_elements: false };
            Ok(vec![plain, form(family, format!("{prefix}_ctx_{name}"), c_type, Some(context))?])
        }
        scope => bail!("{scope} is no scope of a family"),
    }
}

fn form(
    family: &Family,
    name: String,
    c_type: Option<&'static str>,
    context: Option<Argument>,
) -> Result<Function> {
    let is_with_context = context.is_some();
    let mut arguments: Vec<_> = context.into_iter().collect();
    for &(name, words) in family.arguments {
        let (c_type, is_to_elements) = c_words(words, c_type)?;
        let name = SPELLINGS.iter().find(|(table, _)| *table == name).map_or(name, |(_, standard)| standard);
        arguments.push(Argument { name: name.to_owned(), c_type, is_to_elements });
    }
    let result = if family.result.is_empty() { "void".to_owned() } else { c_words(family.result, c_type)?.0 };
    let generic = match family.kind {
        "generic" => Some(format!("{}{}", family.prefix(), family.name)),
        "joined" => Some(format!("shmem{}", family.name)),
        _ => None,
    };
    let choice = generic.zip(c_type).map(|(generic, c_type)| Choice {
        generic,
        c_type,
        is_with_context,
        has_context_form: family.scope.ends_with("both"),
    });
    let is_deprecated = family.remarks.iter().any(|remark| remark.contains("Deprecated."));
    let home = match (family.is_extension(), family.kind) {
        (false, _) => Home::Standard,
        (true, "joined") => Home::Joined,
        (true, _) => Home::Extension,
    };
    Ok(Function { name, arguments, result, is_deprecated, choice, home })
}

impl Family {
    fn is_extension(&self) -> bool {
        self.scope.contains("extra")
    }

    /// The prefix of the names of its functions.
    fn prefix(&self) -> &'static str {
        if self.is_extension() { "shmemx" } else { "shmem" }
    }
}

/// Translates a type of the table to C, and tells whether it is a pointer to elements of the type of the row.
fn c_words(words: &str, element: Option<&str>) -> Result<(String, bool)> {
    let words = words.trim();
    if let Some(target) = words.strip_prefix("*mut ") {
        return Ok((pointer(&c_words(target, element)?.0), target.trim() == "T"));
    }
    if let Some(target) = words.strip_prefix("*const ") {
        let (inner, _) = c_words(target, element)?;
        let constant = if inner.ends_with('*') { format!("{inner}const ") } else { format!("const {inner}") };
        return Ok((pointer(&constant), target.trim() == "T"));
    }
    let name = match words {
        "T" => match element {
            Some("double _Complex") => "pelago_complexd_t",
            Some("float _Complex") => "pelago_complexf_t",
            Some(element) => element,
            None => bail!("T stands where there is no table of types"),
        },
        "c_int" => "int",
        "c_long" => "long",
        "c_char" => "char",
        "c_void" => "void",
        "size_t" => "size_t",
        "ptrdiff_t" => "ptrdiff_t",
        "u64" => "uint64_t",
        "f64" => "double",
        "Ctx" => "shmem_ctx_t",
        "TeamHandle" => "shmem_team_t",
        "TeamConfig" => "shmem_team_config_t",
        "SessionConfig" => "shmem_ctx_session_config_t",
        "Request" => "shmemx_req_t",
        "SpaceHandle" => "shmemx_space_t",
        "Counter" => "shmemx_ct_t",
        "ContextCounts" => "shmemx_pcntr_t",
        "ThreadNumber" => "pelago_gettid_t",
        _ => bail!("{words} is no type of the table; those are listed in xtask/src/header/prototype.rs"),
    };
    Ok((name.to_owned(), false))
}

/// A pointer to a type.
pub fn pointer(target: &str) -> String {
    let gap = if target.ends_with('*') { "" } else { " " };
    format!("{}{gap}*", target.trim_end())
}

#[cfg(test)]
mod tests {
    use super::super::table::Row;
    use super::*;

    const PUT: Family = Family {
        scope: "both",
        kind: "generic",
        rows: &[
            Row { part: "longlong", c_type: "long long" },
            Row { part: "complexd", c_type: "double _Complex" },
        ],
        name: "_put",
        suffix: "",
        arguments: &[("dest", "*mut T"), ("source", "*const T"), ("nelems", "size_t"), ("pe", "c_int")],
        result: "",
        remarks: &["doc = r\" Deprecated.\""],
    };

    fn prototypes(family: &Family) -> Vec<String> {
        functions(family).unwrap().iter().map(|function| function.prototype("p")).collect()
    }

    #[test]
    fn a_family_with_types_and_contexts() {
        assert_eq!(
            prototypes(&PUT)[..3],
            [
                "void pshmem_longlong_put(long long *dest, const long long *source, size_t nelems, int pe)",
                "void pshmem_ctx_longlong_put(shmem_ctx_t ctx, long long *dest, const long long *source, \
                 size_t nelems, int pe)",
                "void pshmem_complexd_put(pelago_complexd_t *dest, const pelago_complexd_t *source, \
                 size_t nelems, int pe)",
            ]
        );
        let first = &functions(&PUT).unwrap()[0];
        assert!(
            first.is_deprecated && first.arguments[0].is_to_elements && !first.arguments[2].is_to_elements
        );
    }

    #[test]
    fn sizes_names_and_results() {
        let sized =
            Family { kind: "sized", name: "put", suffix: "_nbi", arguments: &[], scope: "only", ..PUT };
        assert_eq!(prototypes(&sized)[0], "void pshmem_putlonglong_nbi(void)");
        let named = Family { kind: "named", rows: &[], name: "_my_pe", result: "c_int", ..sized };
        assert_eq!(prototypes(&named), ["int p_my_pe(void)"]);
        let plain = Family { kind: "plain", result: "*mut c_void", ..named };
        assert_eq!(prototypes(&plain), ["void *pshmem__my_pe(void)"]);
    }

    #[test]
    fn extensions_have_their_own_prefix() {
        let extra = Family { scope: "extra_both", ..PUT };
        let functions = functions(&extra).unwrap();
        assert_eq!((functions[0].name.as_str(), functions[0].home), ("shmemx_longlong_put", Home::Extension));
        assert_eq!(functions[1].name, "shmemx_ctx_longlong_put");
        assert_eq!(functions[1].choice.as_ref().unwrap().generic, "shmemx_put");
        let joined = Family { scope: "extra", kind: "joined", ..PUT };
        let function = &super::functions(&joined).unwrap()[0];
        assert_eq!((function.name.as_str(), function.home), ("shmemx_longlong_put", Home::Joined));
        assert_eq!(function.choice.as_ref().unwrap().generic, "shmem_put");
    }

    #[test]
    fn pointers_to_pointers() {
        assert_eq!(c_words("*mut *mut c_void", None).unwrap().0, "void **");
        assert_eq!(c_words("*const *const c_void", None).unwrap().0, "const void *const *");
    }

    #[test]
    fn words_that_the_table_does_not_have_are_refused() {
        for arguments in [&[("x", "usize")], &[("x", "*mut T")]] {
            let family = Family { kind: "plain", rows: &[], arguments, ..PUT };
            assert!(functions(&family).is_err(), "{arguments:?}");
        }
        assert!(functions(&Family { kind: "plain", ..PUT }).is_err());
        assert!(functions(&Family { scope: "neither", ..PUT }).is_err());
    }
}
