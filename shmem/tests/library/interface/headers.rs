//! The headers compile without a warning, every function can be linked, and every generic name chooses the
//! function of its argument's type, in C and C++.
//!
//! The programs are written here from the prototypes in the headers. That the names are those of the standard
//! is tested in `symbols.rs`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

use crate::common::header::{Generic, Prototype, generics, prototypes};
use crate::common::{c_program, cxx_program, end_of, folder, installed, run};

/// The flags for each program, in each language.
const PEDANTIC: [&str; 2] = ["-pedantic", "-O0"];

/// Names of types in the names of functions, and which of them are one type of C where `long` has 64 bits.
const TYPES: [(&str, &str); 26] = [
    ("float", "float"),
    ("double", "double"),
    ("longdouble", "longdouble"),
    ("complexf", "complexf"),
    ("complexd", "complexd"),
    ("char", "char"),
    ("schar", "int8"),
    ("short", "int16"),
    ("int", "int32"),
    ("long", "int64"),
    ("longlong", "longlong"),
    ("uchar", "uint8"),
    ("ushort", "uint16"),
    ("uint", "uint32"),
    ("ulong", "uint64"),
    ("ulonglong", "ulonglong"),
    ("int8", "int8"),
    ("int16", "int16"),
    ("int32", "int32"),
    ("int64", "int64"),
    ("uint8", "uint8"),
    ("uint16", "uint16"),
    ("uint32", "uint32"),
    ("uint64", "uint64"),
    ("size", "uint64"),
    ("ptrdiff", "int64"),
];

/// A program that takes the address of every function.
fn addresses() -> String {
    let mut text = String::from("#include <pshmem.h>\n#include <shmemx.h>\n");
    for (index, found) in ["shmem.h", "pshmem.h", "shmemx.h"].into_iter().flat_map(prototypes).enumerate() {
        let Prototype { result, name, arguments } = found;
        let _ = writeln!(text, "{result} (*const volatile a{index})({arguments}) = {name};");
    }
    text + "int main(void)\n{\n    return a0 == 0;\n}\n"
}

#[test]
fn every_function_is_there_in_c99() {
    let program = c_program(&addresses(), &[&PEDANTIC[..], &["-std=c99"]].concat());
    end_of(Command::new(program)).assert_silent();
}

#[test]
fn every_function_is_there_in_c11() {
    let program = c_program(&addresses(), &[&PEDANTIC[..], &["-std=c11", "--static"]].concat());
    end_of(Command::new(program)).assert_silent();
}

#[test]
fn every_function_is_there_in_cxx() {
    let text = addresses().replace("*const volatile", "*volatile");
    let program = cxx_program(&text, &[&PEDANTIC[..], &["-std=c++17"]].concat());
    end_of(Command::new(program)).assert_silent();
}

#[test]
fn the_old_place_and_other_languages_compile() {
    let text = "#include <mpp/shmem.h>\n#include <mpp/shmemx.h>\n#include <shmem.h>\n\
                int main(void)\n{\n    return SHMEM_MINOR_VERSION != 6;\n}\n";
    for flags in [["-std=c99"], ["-std=gnu11"], ["-std=gnu17"]] {
        c_program(text, &[&PEDANTIC[..], &flags].concat());
    }
    let inside = format!("extern \"C\" {{\n#include <shmem.h>\n}}\n{text}");
    for flags in [["-std=c++11"], ["-std=gnu++17"], ["-std=c++20"]] {
        cxx_program(&inside, &[&PEDANTIC[..], &flags].concat());
    }
}

/// A function that a generic name may stand for.
struct Candidate {
    prototype: Prototype,
    is_with_context: bool,
    /// One name for all names of its type.
    class: &'static str,
}

/// The functions that a generic name may stand for, by the rules of their names.
fn candidates(generic: &Generic, known: &BTreeMap<String, Prototype>) -> Vec<Candidate> {
    let rest = generic.name.trim_start_matches("shmemx").trim_start_matches("shmem");
    let mut found = Vec::new();
    // Of `shmemx_`, a name of the standard finds the extensions that it stands for too.
    let forms = [("shmem_", false), ("shmem_ctx_", true), ("shmemx_", false), ("shmemx_ctx_", true)];
    for (prefix, is_with_context) in forms {
        for (part, class) in TYPES {
            let prototype = known.get(&format!("{prefix}{part}{rest}"));
            found.extend(prototype.map(|prototype| {
                let prototype = prototype.clone();
                Candidate { prototype, is_with_context, class }
            }));
        }
    }
    found
}

/// A program in which each function says its name, and which calls each generic name in each form with each
/// type. In C++ a function may have the generic name itself: it is that of `long`.
fn calls(file: &str, is_cxx: bool) -> String {
    let known: BTreeMap<_, _> =
        prototypes(file).into_iter().map(|found| (found.name.clone(), found)).collect();
    let mut text = format!("#include <{file}>\n");
    text.push_str(
        "#include <stdio.h>\n#include <string.h>\n\
         static const char *last = \"\";\nstatic int wrong;\n\
         static void check(const char *generic, const char *expected)\n{\n    char name[80];\n    \
         snprintf(name, sizeof name, \"|%s|\", last);\n    \
         if (!strstr(expected, name))\n        \
         wrong = printf(\"%s called %s, not %s\\n\", generic, last, expected);\n    \
         last = \"\";\n}\n",
    );
    let mut body = String::new();
    for generic in generics(file) {
        let candidates = candidates(&generic, &known);
        let own = is_cxx.then(|| known.get(&generic.name)).flatten();
        let functions = candidates.iter().map(|candidate| &candidate.prototype);
        for Prototype { result, name, arguments } in functions.chain(own) {
            let give = if result == "void" { "" } else { " return 0;" };
            let _ = writeln!(text, "{result} ({name})({arguments}) {{ last = \"{name}\";{give} }}");
        }
        for candidate in &candidates {
            let same = candidates.iter().filter(|other| {
                (other.is_with_context, other.class) == (candidate.is_with_context, candidate.class)
            });
            let mut expected: String = same.map(|other| format!("|{}|", other.prototype.name)).collect();
            if own.is_some() && candidate.class == "int64" {
                let _ = write!(expected, "|{}|", generic.name);
            }
            body.push_str(&call(&generic.name, &candidate.prototype, true, is_cxx, &expected));
            if candidate.prototype.arguments.contains("const ") {
                body.push_str(&call(&generic.name, &candidate.prototype, false, is_cxx, &expected));
            }
        }
    }
    text + "int main(void)\n{\n" + &body + "    return wrong != 0;\n}\n"
}

/// A block with one call, whose result has the right type; pointers to constants are such, or are not.
fn call(generic: &str, target: &Prototype, is_const: bool, is_cxx: bool, expected: &str) -> String {
    let mut text = String::from("    {");
    let types = target.types();
    for (index, kind) in types.iter().enumerate() {
        let kind = if is_const { kind } else { kind.strip_prefix("const ").unwrap_or(kind) };
        let _ = write!(text, " {kind} a{index} = 0;");
    }
    let values: Vec<_> = (0..types.len()).map(|index| format!("a{index}")).collect();
    let call = format!("{generic}({})", values.join(", "));
    let result = &target.result;
    match (result.as_str(), is_cxx) {
        ("void", _) => {}
        (_, true) => {
            let _ = write!(text, " static_assert(sizeof({call}) == sizeof({result}), \"{generic}\");");
        }
        (_, false) => {
            let _ =
                write!(text, " _Static_assert(_Generic({call}, {result}: 1, default: 0), \"{generic}\");");
        }
    }
    let _ = writeln!(text, " (void) {call}; check(\"{generic}\", \"{expected}\"); }}");
    text
}

const UNUSED: &str = "-Wno-unused-parameter";

#[test]
fn generic_names_choose_by_type_in_c() {
    for file in ["shmem.h", "shmemx.h"] {
        let program = c_program(&calls(file, false), &[&PEDANTIC[..], &[UNUSED]].concat());
        end_of(Command::new(program)).assert_silent();
    }
}

#[test]
fn generic_names_choose_by_type_in_cxx() {
    for file in ["shmem.h", "shmemx.h"] {
        let program = cxx_program(&calls(file, true), &[&PEDANTIC[..], &[UNUSED]].concat());
        end_of(Command::new(program)).assert_silent();
    }
}

/// Uses that the generated calls do not have: arrays, values of other types, calls in calls, handles of
/// several kinds.
const USES: &str = r#"
#include <shmem.h>

static long array[4], flag;
static const shmem_ctx_t usual = SHMEM_CTX_DEFAULT;
static shmem_team_t everybody = SHMEM_TEAM_WORLD;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), right = (me + 1) % shmem_n_pes();
    long *box = (long *) shmem_malloc(4 * sizeof *box), here[4] = {1, 2, 3, 4};
    volatile long *watched = box;
    shmem_put(box, here, 4, right);
    shmem_put(usual, box, array, 1, right);
    shmem_put(SHMEM_CTX_DEFAULT, box, here, sizeof here / sizeof *here, right);
    shmem_p(box + 1, 'x', right);
    shmem_p(usual, &box[1], shmem_g(array + 2, me) - shmem_g(usual, array + 2, me), right);
    (void) watched;
    uint64_t *signals = (uint64_t *) shmem_calloc(1, sizeof *signals);
    shmem_signal_add(signals, 1, right);
    shmem_signal_add(usual, signals, 2, right);
    shmem_barrier_all();
    if (*signals != 3) return 3;
    shmem_signal_set(SHMEM_CTX_DEFAULT, signals, 9, me);
    shmem_signal_set(signals, 7, me);
    shmem_wait_until(signals, SHMEM_CMP_EQ, 7);
    static long work[SHMEM_SYNC_SIZE];
    shmem_sync(0, 0, shmem_n_pes(), work);
    if (shmem_sync(everybody) || shmem_sync(SHMEM_TEAM_WORLD)) return 1;
    shmem_barrier_all();
    if (box[0] != 1 || box[1] != 0 || box[3] != 4) return 2;
    (void) flag;
    shmem_free(box);
    shmem_finalize();
    return 0;
}
"#;

#[test]
fn generic_names_take_what_programs_give_them() {
    run(&c_program(USES, &["-pedantic"]), 2, &[]).assert_silent();
    run(&cxx_program(USES, &["-pedantic"]), 2, &[]).assert_silent();
}

#[test]
fn a_wrong_type_is_refused_by_the_compiler() {
    let text = "#include <shmem.h>\nint main(void)\n{\n    struct x *p = 0;\n    shmem_put(p, p, 1, 0);\n}\n";
    for (wrapper, language, words) in [("oshcc", "c", "_Generic"), ("oshc++", "c++", "no matching function")]
    {
        let source = folder().join(format!("wrong-{}.{}", std::process::id(), language.replace('+', "p")));
        installed();
        std::fs::write(&source, text).unwrap();
        let mut command = Command::new(installed().join("bin").join(wrapper));
        command.args(["-fsyntax-only", "-x", language]).arg(&source);
        end_of(command).assert_refused(1, &[words]);
        std::fs::remove_file(&source).unwrap();
    }
}
