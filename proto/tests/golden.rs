//! The compiled declaration against the golden table, in both directions.
//!
//! Owns the comparison; `rows` owns the form both sides are brought into. It must not know the proto files' layout: a message may
//! move from file to file, but not change. On failure it prints the rows as they would stand in the table.

mod rows;

use std::collections::BTreeSet;
use std::error::Error;

use prost_reflect::DescriptorPool;

const GOLDEN: &str = include_str!("../golden/cri-v1.tsv");
const PACKAGE: &str = "runtime.v1";

#[test]
fn declaration_is_the_golden_table() {
    let pool = DescriptorPool::decode(cri_api::FILE_DESCRIPTOR_SET).unwrap();
    let difference = difference(&golden_rows(GOLDEN), &rows::of_package(&pool, PACKAGE));
    assert!(difference.is_empty(), "{difference}");
}

#[test]
fn no_row_stands_twice_in_the_golden_table() {
    let mut seen = BTreeSet::new();
    let twice: Vec<_> = golden_lines(GOLDEN)
        .filter(|row| !seen.insert(*row))
        .collect();
    assert_eq!(twice, Vec::<&str>::new());
}

/// The comparison itself: each kind of slip in a declaration must show.
#[test]
fn every_kind_of_slip_shows() {
    let right = r#"
        syntax = "proto3";
        package p.v1;
        service S { rpc Watch(In) returns (stream Out); rpc Ask(In) returns (Out); }
        message In {}
        message Out {
          enum Kind { A = 0; B = 1; }
          Kind kind = 1;
          repeated string names = 2;
          map<string, int64> sizes = 3;
          string old = 4 [deprecated = true];
          In inner = 5;
        }
    "#;
    let cases = [
        ("field number", "sizes = 3;", "sizes = 6;"),
        ("field name", "names = 2", "nomes = 2"),
        ("scalar type", "repeated string", "repeated bytes"),
        ("repeated lost", "repeated string", "string"),
        ("map value type", "int64>", "uint64>"),
        ("map key type", "map<string", "map<int32"),
        ("presence added", "string old", "optional string old"),
        ("into a oneof", "In inner = 5;", "oneof o { In inner = 5; }"),
        ("message type", "In inner", "Out inner"),
        ("deprecated lost", " [deprecated = true]", ""),
        (
            "deprecated enum value",
            "B = 1",
            "B = 1 [deprecated = true]",
        ),
        (
            "deprecated message",
            "message In {",
            "message In { option deprecated = true;",
        ),
        ("enum number", "B = 1", "B = 2"),
        ("enum name", "B = 1", "C = 1"),
        ("enum value added", "B = 1;", "B = 1; C = 2;"),
        ("answer no longer streamed", "(stream Out)", "(Out)"),
        ("request streamed", "Ask(In)", "Ask(stream In)"),
        ("request type", "Ask(In)", "Ask(Out)"),
        ("rpc gone", "rpc Ask(In) returns (Out);", ""),
        (
            "empty message filled",
            "message In {}",
            "message In { bool x = 1; }",
        ),
        (
            "message added",
            "message In {}",
            "message In {} message New {}",
        ),
        ("field gone", "In inner = 5;", ""),
    ];
    let expected = rows_of_source(right).unwrap();
    assert_eq!(difference(&expected, &rows_of_source(right).unwrap()), "");
    for (name, from, to) in cases {
        let wrong = right.replacen(from, to, 1);
        assert_ne!(wrong, right, "{name}: the case changes nothing");
        let difference = difference(&expected, &rows_of_source(&wrong).unwrap());
        assert!(!difference.is_empty(), "{name}: went unseen");
    }
}

#[test]
fn difference_names_the_rows_of_each_side() {
    let golden = golden_rows("# header\nfield\tA\tx\t1\tstring\nmessage\tB\n");
    let compiled = golden_rows("field\tA\tx\t2\tstring\nmessage\tB\n");
    assert_eq!(
        difference(&golden, &compiled),
        "missing: in golden/cri-v1.tsv, but not what proto/ compiles to (1):\n  field\tA\tx\t1\tstring\n\
         unexpected: what proto/ compiles to, but not in golden/cri-v1.tsv (1):\n  field\tA\tx\t2\tstring\n"
    );
}

fn golden_lines(table: &str) -> impl Iterator<Item = &str> {
    table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn golden_rows(table: &str) -> BTreeSet<String> {
    golden_lines(table).map(str::to_owned).collect()
}

/// Empty when the two sides agree.
fn difference(golden: &BTreeSet<String>, compiled: &BTreeSet<String>) -> String {
    let sides = [
        (
            "missing: in golden/cri-v1.tsv, but not what proto/ compiles to",
            golden,
            compiled,
        ),
        (
            "unexpected: what proto/ compiles to, but not in golden/cri-v1.tsv",
            compiled,
            golden,
        ),
    ];
    let mut report = String::new();
    for (title, these, others) in sides {
        let rows: Vec<_> = these.difference(others).collect();
        if !rows.is_empty() {
            report += &format!("{title} ({}):\n", rows.len());
            report.extend(rows.iter().map(|row| format!("  {row}\n")));
        }
    }
    report
}

/// The rows of a declaration written in a test, in package `p.v1`.
fn rows_of_source(source: &str) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let file = protox::file::File::from_source("case.proto", source)?;
    let mut pool = DescriptorPool::new();
    pool.add_file_descriptor_proto(file.file_descriptor_proto().clone())?;
    Ok(rows::of_package(&pool, "p.v1"))
}
