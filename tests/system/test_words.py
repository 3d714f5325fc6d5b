#!/usr/bin/env python3
"""What commands say to an operator who errs, or who has a reason to wonder: notes, hints and suggestions."""

import os
import subprocess
import unittest

from harness import DAY, EX_CONFIG, EX_USAGE, Case, command, traffic


class Words(Case):
    def setUp(self):
        super().setUp()
        self.write("a.log", traffic(2000))

    def test_help_of_a_command(self):
        self.assertEqual(self.tallyd("query", "--help"), self.tallyd("help", "query"))
        self.tallyd("help", "qurey", status=EX_USAGE)
        self.assertIn('did you mean "query"?', self.err)

    def test_address_of_a_daemon_without_its_scheme(self):
        for operand, hint in ("127.0.0.1:8080", "(did you mean http://127.0.0.1:8080?)"), ("site", "it takes one report at a time"):
            self.tallyd("query", operand, "pages", status=EX_USAGE)
            self.assertIn(hint, self.err)

    def test_option_before_its_command(self):
        self.tallyd("--config", "a.yaml", "check", status=EX_USAGE)
        self.assertIn("expected options behind the command: `tallyd check --config …`", self.err)

    def test_paths_that_the_next_command_stumbles_over_are_noted(self):
        os.mkdir(self.path("old"))
        self.write("file", b"")
        here = self.dir
        for text, note in ((f"sources: {{a: {{path: {here}/x.log, olddir: {here}/old}}}}", None),
                           (f"sources: {{a: {{path: '{here}/*.log', olddir: no}}}}", None),  # each has a folder of its own
                           (f"sources: {{a: {{path: {here}/x.log, olddir: old}}}}", None),
                           (f"sources: {{a: {{path: {here}/x.log, olddir: no}}}}", "sources.a.olddir: there is no such folder"),
                           (f"sources: {{a: {{path: {here}/x.log, olddir: file}}}}", "sources.a.olddir: there is no such folder"),
                           (f"sources: {{a: {{path: {here}/old}}}}", "sources.a.path is a folder"),
                           (f"sources: {{a: {{path: [/a.log, {here}/old]}}}}", "sources.a.path.1 is a folder"),
                           ("sources: {a: {path: ~/x.log}}", "sources.a.path begins with ~"),
                           ("sources: {a: {path: $HOME/*.log}}", "sources.a.path begins with ~ or $"),
                           ("sources: {a: {path: 'file:///x.log'}}", "sources.a.path begins with file:"),
                           ("sources: {a: {path: x.log}}", "sources.a.path is relative"),
                           (f"store: {{url: 'sqlite:{here}/old/t.db'}}", None),
                           ("store: {url: 'sqlite:none/t.db'}", "store.url: there is no folder for its file"),
                           (f"store: {{url: 'sqlite:{here}/file/t.db'}}", "store.url: there is no folder for its file"),
                           ("rejects: {file: none/r.log}", "rejects.file: there is no folder for it")):
            with self.subTest(text):
                self.write("a.yaml", text.encode())
                said = self.tallyd("check", "-c", "a.yaml")
                self.assertEqual(0 if note is None else 1, said.count("note: "), said)
                self.assertIn("" if note is None else f"note: {note}", said)
        self.assertIn("# note: rejects.file", self.tallyd("check", "-c", "a.yaml", "--print"))

    def test_own_field_that_is_like_another_is_noted(self):
        for source, report, notes in (
                ("decode: json", "{by: [paht]}", ["paht is a field of your own; did you mean path?"]),
                ("decode: logfmt", "{where: [methd=GET]}", ["methd is a field of your own; did you mean method?"]),
                ("decode: json, fields: {duration: /d}", "{measures: {n: count, d: histogram(duratoin)}}",
                 ["duratoin is a field of your own; did you mean duration?"]),
                ("decode: json, fields: {hosts: /h, paht: /p}", "{by: [hosts, paht]}", []),
                ("decode: json", "{by: [path, userid, tenant, host_net, 'query:paths'], measures: {n: sum(latency)}}", [])):
            with self.subTest(report):
                self.write("a.yaml", f"sources: {{a: {{path: /a.log, {source}}}}}\nreports: {{r: {report}, all: {{}}}}\n".encode())
                said = [line for line in self.tallyd("check", "a.yaml").splitlines() if "note: " in line]
                self.assertEqual([f"note: reports.r: {note}" for note in notes], said)

    def test_report_without_counts_says_why(self):
        self.write("c.yaml", b"reports: {none: {where: [status=999]}, all: {}}\n")
        self.tallyd("import", "-c", "c.yaml", self.write("none.log", b"nonsense\n"), "--force")
        for said in "none has no counts yet", "none has no counts: its `where` left out all events so far, 2,000":
            self.tallyd("query", "none")
            self.assertIn(said, self.err)
            self.tallyd("import", "-c", "c.yaml", "a.log")

    def test_range_without_anything_is_noted(self):
        self.tallyd("import", "a.log")
        for arguments, is_noted in (([], True), (["--format", "csv"], False), (["--top", "3"], True),
                                    (["--from", DAY[0], "--to", DAY[1]], False)):
            with self.subTest(arguments):
                self.tallyd("query", "pages", *arguments)
                self.assertEqual(is_noted, "nothing was counted in this range" in self.err)
        told = self.path("told")
        with open(told, "wb") as both:
            subprocess.run([*command(), "query", "pages", "--step", "minute"], cwd=self.dir, stdout=both, stderr=both, check=True)
        self.assertTrue(self.read("told").startswith(b"note: nothing was counted in this range"), self.read("told"))

    def test_what_a_store_does_not_take_is_noted(self):
        for name, text in (("sources.access.raw", b"sources: {access: {path: /a.log, raw: all}}"),
                           ("reports.site.layout", b"reports: {site: {layout: minute}}")):
            for store, is_noted in ((b"sqlite:a.db", True), (b"mongodb://127.0.0.1:1/a", False)):
                with self.subTest(text, store=store):
                    self.write("a.yaml", text + b'\nstore: {url: "' + store + b'"}\n')
                    self.assertEqual(is_noted, "note: " in self.tallyd("check", "-c", "a.yaml"))
                    self.assertEqual(is_noted, f"({name})" in self.tallyd("check", "-c", "a.yaml", "--print"))
            self.tallyd("import", "-c", "a.yaml", "--store", "sqlite:b.db", "a.log", status=EX_CONFIG)


if __name__ == "__main__":
    unittest.main()
