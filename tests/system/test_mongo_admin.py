#!/usr/bin/env python3
"""What `tallyd admin` prints is what it does, and what `import` does at start; what others made is left alone; and
validators refuse what others damage, but never what tallyd writes.

Of sharding only the text is tested: no server at hand shards.
"""

import re

from harness import EX_CONFIG, EX_NOINPUT, EX_NOPERM, EX_USAGE, dice
from mongocase import EX_UNAVAILABLE, LINES_A_BATCH, REPORTS, Int64, MongoCase, log, main, proxy

try:
    import bson.json_util
    import pymongo.errors
except ImportError:
    pass  # as in mongocase

REFUSED = (121, 525074461)  # the second is FerretDB's
UNAUTHORIZED, FAILED_TO_PARSE = 13, 9
HELLO, LISTS = (re.compile(rb".{25}\x10" + name + rb"\0", re.DOTALL) for name in (b"hello", b"listCollections"))  # as proxy.COMMAND
INDEX = "tallyd_series_date"
OWN = REPORTS + """\
  sections:
    by: [method, "path:1", status]
    measures: {n: count, worst: max(bytes), mean: mean(bytes), now: last(bytes)}
"""
# The collections of these reports, and of the books.
INDEXES, VALIDATORS = 21, 27
DAYS = ("pages.day", "site.day", "sections.day")


def documents_of(line):
    """The arguments of a shell's call: JSON objects one behind the other."""
    line = line[line.index("{"):line.rindex(")")]
    found, start, depth = [], 0, 0
    for at, char in enumerate(line):
        depth += (char == "{") - (char == "}")
        if char == "{" and depth == 1:
            start = at
        if char == "}" and depth == 0:
            found.append(bson.json_util.loads(line[start:at + 1]))
    return found


class AdminCase(MongoCase):
    def setUp(self):
        super().setUp()
        self.validation("error")
        self.log = log(dice(), 2 * LINES_A_BATCH)
        self.write("a.log", self.log)

    def validation(self, word):
        config = f"aggregate: {{batch_size: 64KiB}}\nstore: {{validation: {word}}}\n{OWN}"
        self.write("tallyd.yaml", config.encode())

    def admin(self, *arguments, url=None, **options):
        return self.tallyd("admin", *arguments, "-c", "tallyd.yaml", "--store", url or self.store, **options)

    def paste(self, text):
        """Do what a shell would with the text, which must name this database in every line that is no comment."""
        lines = [line for line in text.splitlines() if line and not line.startswith("//")]
        for line in lines:
            self.assertTrue(line.startswith(f'db.getSiblingDB("{self.name}").'), line)
            collection = re.search(r'\.getCollection\("(.+?)"\)\.createIndex\(', line)
            arguments = documents_of(line)
            if collection:
                key, options = arguments
                self.base[collection.group(1)].create_index(list(key.items()), **options)
            else:
                self.assertIn(".runCommand(", line)
                self.base.command(arguments[0])
        return lines

    def state(self):
        """{collection: (its indexes, its options)}"""
        return {name: (self.base[name].index_information(), self.base[name].options())
                for name in self.base.list_collection_names()}

    def refuse(self, commands, code, mode="alwaysOn"):
        self.client.admin.command("configureFailPoint", "failCommand", mode=mode,
                                  data={"failCommands": commands, "errorCode": code})
        self.addCleanup(self.client.admin.command, "configureFailPoint", "failCommand", mode="off")


class SameForAll(AdminCase):
    def test_what_is_printed_is_what_is_done(self):
        for what, count in ("indexes", INDEXES), ("validator", VALIDATORS):
            with self.subTest(what=what):
                self.anew()
                self.assertEqual(count, len(self.paste(self.admin(what))))
                printed = self.state()
                self.anew()
                done = self.admin(what, "--apply")
                self.assertEqual(printed, self.state())
                self.assertEqual(count, done.count("was made"))
                again = self.admin(what, "--apply")
                self.assertEqual(printed, self.state())
                self.assertEqual(count, again.count("is there"))
                self.assertEqual(count, self.admin(what).count("; is there\n"))

    def test_what_start_makes_is_the_same(self):
        self.admin("indexes", "--apply")
        self.admin("validator", "--apply")
        applied = self.state()
        self.anew()
        self.count("a.log")
        started = {name: state for name, state in self.state().items() if name in applied}
        self.assertEqual(applied, started)

    def test_without_a_server_it_prints_for_a_new_database(self):
        nowhere = f"mongodb://127.0.0.1:1/{self.name}?serverSelectionTimeoutMS=300"
        for what in "indexes", "shard", "validator":
            with self.subTest(what=what):
                out = self.admin(what, url=nowhere)
                self.assertIn("// As for a new database", out)
                self.assertEqual(re.findall("^[^/\n].*", self.admin(what), re.M), re.findall("^[^/\n].*", out, re.M))
                self.assertEqual("", self.admin(what, "--apply", url=nowhere, status=EX_UNAVAILABLE))
                self.assertIn("refused", self.err)

    def test_what_is_no_question(self):
        self.admin("indexes", url="sqlite:a.db", status=EX_USAGE)
        self.assertIn("expected one in MongoDB", self.err)
        for arguments in [], ["index"], ["indexes", "shard"], ["indexes", "--aply"]:
            self.admin(*arguments, status=EX_USAGE)
        self.tallyd("admin", "indexes", "-c", "nowhere.yaml", status=EX_NOINPUT)


class Indexes(AdminCase):
    def test_none_is_made_where_none_is_wanted(self):
        self.write("tallyd.yaml", f"store: {{indexes: false}}\n{OWN}".encode())
        self.count("a.log")
        self.assertEqual({"_id_"}, set(self.base["pages.day"].index_information()))
        self.assertIn(f"pages.day: {INDEX} was made\n", self.admin("indexes", "--apply"))
        self.count("a.log")
        self.assertIn(INDEX, self.base["pages.day"].index_information())

    def test_another_of_the_same_name_is_left(self):
        self.base["pages.day"].create_index([("metadata.date", 1)], name=INDEX)
        out = self.admin("indexes")
        self.assertIn("pages.day: the history of one series, equality before range; another one exists", out)
        self.assertRegex(out, r'\n// another of this name: {.*"metadata.date" : 1')
        self.assertRegex(out, r'\n// db\.\S+getCollection\("pages.day"\)')
        self.assertIn(f"pages.day: {INDEX} differs", self.admin("indexes", "--apply"))
        self.count("a.log")
        self.assertIn("event=index_differs collection=pages.day", self.err)
        self.assertEqual([("metadata.date", 1)], self.base["pages.day"].index_information()[INDEX]["key"])

    def test_one_that_cannot_serve_is_another(self):
        key = [("metadata.path", 1), ("metadata.date", 1)]
        self.base["pages.day"].create_index(key, name=INDEX, unique=True)
        self.base["pages.month"].create_index(key, name=INDEX, partialFilterExpression={"total": {"$gt": 5}})
        out = self.admin("indexes")
        for name in "pages.day", "pages.month":
            self.assertRegex(out, f"\n// {name}: .*; another one exists")

    def test_all_are_listed(self):
        self.base["pages.day"].create_index([("metadata.path", 1), ("metadata.date", 1)], name="mine")
        self.base["pages.day"].create_index([("daily", -1)])
        out = self.admin("indexes")
        self.assertRegex(out, r"\n// pages.day: .*; is there\n// ")
        self.assertRegex(out, r'\n// under this name: {.*"mine"')
        self.assertRegex(out, r'\n// there is also: {.*"daily_-1"')
        self.assertIn(f"pages.day: {INDEX} is there\n", self.admin("indexes", "--apply"))
        self.assertEqual({"_id_", "mine", "daily_-1"}, set(self.base["pages.day"].index_information()))

    def test_a_refusal_is_told_and_the_rest_is_made(self):
        self.refuse(["createIndexes"], UNAUTHORIZED, {"times": 1})
        out = self.admin("indexes", "--apply", status=EX_NOPERM)
        self.assertIn("// pages.day: failed\n", out)
        self.assertEqual(INDEXES - 1, out.count("was made"))


class Validators(AdminCase):
    def is_taken(self, collection, update):
        """May somebody change a document so?"""
        try:
            self.base[collection].update_one({}, update)
            return True
        except pymongo.errors.WriteError as error:
            self.assertIn(error.code, REFUSED, update)
            return False

    def refused(self, collection, update):
        self.assertFalse(self.is_taken(collection, update), (collection, update))

    def damage(self):
        for name in "daily", "hourly.3", "minute.3.4", "bytes.daily", "bytes.hourly.3", "bytes.minute.3.4":
            for value in "12", 12, 12.5, None:  # a shell's numbers are none of ours
                self.refused("pages.day", {"$set": {name: value}})
        for name, value in (("metadata.date", "2026-01-05"), ("metadata.path", 7), ("metadata", 7), ("hourly", 7),
                            ("applied.w0", "1"), ("modified", 1), ("v", "1")):
            self.refused("pages.day", {"$set": {name: value}})
        for name in "applied", "modified", "v", "metadata", "metadata.date":
            self.refused("pages.day", {"$unset": {name: 1}})
        for name, value in (("mean.daily", 7), ("mean.daily.units", 1.5), ("mean.hourly.3.count", "1"),
                            ("worst.daily", 1.5), ("now.minute.3.4.t", 5), ("now.daily.v", 1.5)):
            self.refused("sections.day", {"$set": {name: value}})
        self.refused("segments.hour", {"$set": {"bytes.minute.4": 7.5}})
        self.refused("moments.minute", {"$set": {"second.4": 7}})
        self.refused("pages.month", {"$set": {"daily.5": "7"}})
        self.refused("pages.series", {"$set": {"metadata.path": 7}})
        self.refused("books", {"$set": {"entries.consumed": "7"}})
        self.refused("books", {"$set": {"reports.pages.counted": 7.5}})

    def actions(self):
        return {name: self.base[name].options().get("validationAction") for name in self.base.list_collection_names()
                if self.base[name].options().get("validator")}

    def test_what_others_damage_is_refused(self):
        self.count("a.log")
        self.damage()
        self.assertTrue(self.is_taken("pages.day", {"$set": {"note": "ours"}}))
        self.check(self.log, files=["a.log"])

    def test_fractions_pass_too(self):
        self.write("tallyd.yaml", b"""\
store: {validation: error}
reports:
  loads:
    by: [name]
    measures: {n: count, sum: sum(value), mean: mean(value), low: min(value), high: max(value), now: last(value)}
""")
        self.write("a.json", "".join(f'{{"name": "load", "ts": {1767600000 + 7 * i}, "value": {i - 9}.{i}}}\n'
                                     for i in range(20)).encode())
        self.count("--decode", "metric", "a.json")
        self.count("--decode", "metric", self.write("b.json", self.read("a.json").replace(b"load", b"rain")))
        found = self.base["loads.day"].find_one({"metadata.name": "rain"})
        self.assertEqual(20, found["daily"])
        self.assertEqual({"units", "count"}, set(found["mean"]["daily"]))
        for name in "sum.hourly.8", "mean.daily.units", "low.daily", "now.minute.8.0.v":
            for value in 1.5, Int64(7), "7":
                self.refused("loads.day", {"$set": {name: value}})

    def test_it_is_as_configured_at_every_start(self):
        for word in "warn", "error", "off", "warn", "off":
            with self.subTest(validation=word):
                self.validation(word)
                self.count("a.log")
                found = self.actions()
                self.assertEqual(set() if word == "off" else {word}, set(found.values()))
                self.assertEqual(0 if word == "off" else VALIDATORS, len(found))
        self.assertTrue(self.is_taken("pages.day", {"$set": {"daily": "7"}}))

    def test_what_is_there_is_not_made_again(self):
        self.count("a.log")
        self.refuse(["create", "collMod"], UNAUTHORIZED)
        self.count("a.log")
        self.assertNotIn("validator", self.err)
        self.validation("warn")
        self.count("a.log")
        self.assertEqual(1, self.err.count("event=validator_refused"))

    def test_a_server_that_makes_none_is_counted_into(self):
        self.refuse(["create", "collMod"], UNAUTHORIZED)
        self.count("a.log")
        self.assertEqual(1, self.err.count("event=validator_refused"))
        self.assertEqual({}, self.actions())
        self.check(self.log, files=["a.log"])
        self.admin("validator", "--apply", status=EX_NOPERM)

    def test_a_server_that_knows_less_checks_less(self):
        self.refuse(["create"], FAILED_TO_PARSE, {"times": 1})
        self.count("a.log")
        schemas = [str(self.base[name].options()["validator"]) for name in DAYS]
        self.assertEqual([False, True, True], ["additionalProperties" in schema for schema in schemas])
        self.refused("pages.day", {"$set": {"daily": "1"}})
        self.assertTrue(self.is_taken("pages.day", {"$set": {"hourly.3": "1"}}))
        self.assertIn("pages.day: validator is there", self.admin("validator", "--apply"))

    def test_somebody_elses_is_left(self):
        own = {"metadata.path": {"$exists": True}}
        self.base.create_collection("pages.day", validator=own)
        self.assertRegex(self.admin("validator"), r"\n// pages.day: .*is not tallyd's, .*\n// db\.")
        self.assertIn("pages.day: validator is not tallyd's", self.admin("validator", "--apply"))
        self.count("a.log")
        self.assertEqual(1, self.err.count("event=validator_differs collection=pages.day"))
        self.validation("off")
        self.count("a.log")
        self.admin("validator", "--apply")
        self.assertEqual(own, self.base["pages.day"].options()["validator"])

    def test_more_collections_than_one_reply_lists(self):
        """Each is asked for: a database with long validators of others is no reason to count without one's own."""
        part = bson.encode({"cursor": {"id": Int64(5), "ns": f"{self.name}.$cmd.listCollections", "firstBatch": []}, "ok": 1.0})
        with proxy.Proxy(self.server.port, answer=lambda piece: (
                proxy.replied(piece, part) if LISTS.match(piece) and b"\x03filter\0" not in piece else None)) as between:
            url = f"mongodb://127.0.0.1:{between.port}/{self.name}"
            self.count("a.log", url=url)
            self.assertNotIn("counting without a validator", self.err)
            actions = self.actions()
            self.assertIn("pages.day", actions)
            self.base.command("collMod", "pages.day", validator={})
            for _ in range(2):
                said = self.tallyd("admin", "validator", "--apply", "-c", "tallyd.yaml", "--store", url)
            self.assertNotIn("was made", said)
        self.assertEqual(actions, self.actions())

    def test_under_documentdb_they_only_warn(self):
        """Its own gateway stands on the extension that FerretDB stands on, and says so in `hello`."""
        hello = {name: value for name, value in self.client.admin.command("hello").items() if name not in ("$clusterTime", "operationTime")}
        said = bson.encode({**hello, "internal": {"documentdb_versions": ["0.107-0"]}})
        with proxy.Proxy(self.server.port, answer=lambda piece: proxy.replied(piece, said) if HELLO.match(piece) else None) as between:
            url = f"mongodb://127.0.0.1:{between.port}/{self.name}"
            self.count("a.log", url=url)
            self.assertEqual(1, self.err.count("event=validation_warns server=DocumentDB"))
            self.assertEqual({"warn"}, set(self.actions().values()))
            self.base.command("collMod", "pages.day", validator={"metadata.path": {"$exists": True}}, validationAction="error")
            self.count("a.log", url=url, status=EX_CONFIG)
            self.assertIn("pages.day has a validator that refuses documents, and DocumentDB loses updates", self.err)

    def test_what_is_damaged_already_stops_nobody(self):
        half = self.log.index(b"\n", len(self.log) // 2) + 1
        self.validation("off")
        self.write("a.log", self.log[:half])
        self.count("a.log")
        for name in DAYS:
            self.base[name].update_many({}, {"$set": {"v": "one"}})
        self.validation("error")
        self.write("a.log", self.log)
        self.count("a.log")
        self.check(self.log, files=["a.log"])


class Shards(AdminCase):
    def shard(self, name, key, index):
        create = (f'db.getSiblingDB("{self.name}").getCollection("{name}").createIndex({key}, '
                  f'{{ "name" : "{index}" }})')
        return ([create] if index else []) + [f'sh.shardCollection("{self.name}.{name}", {key})']

    def test_keys(self):
        expected = [f'sh.enableSharding("{self.name}")']
        for report, kinds, fields in (("pages", ["day", "month"], ["path"]),
                                      ("segments", ["hour", "day", "month"], ["path:1"]),
                                      ("sections", ["day", "month"], ["method", "path:1", "status"])):
            key = "{ " + ", ".join(f'"metadata.{field}" : 1' for field in [*fields, "date"]) + " }"
            for kind in [*kinds, "year"]:
                expected += self.shard(f"{report}.{kind}", key, INDEX)
            expected += self.shard(f"{report}.series", '{ "_id" : 1 }', None)
        expected += self.shard("batches", '{ "_id" : "hashed" }', "_id_hashed")
        self.assertEqual(expected, [line for line in self.admin("shard").splitlines()
                                    if line and not line.startswith("//")])

    def test_every_collection_has_a_reason(self):
        self.count("a.log")
        self.assertEqual(sorted(self.base.list_collection_names()),
                         sorted(re.findall(r"^// ([a-z.]+): \w.*\w", self.admin("shard"), re.M)))

    def test_every_document_has_its_whole_key(self):
        """That of `other`, too: or else no upsert of it could find its shard."""
        self.write("tallyd.yaml", REPORTS.replace("[path]", "[path], series_max: 2").encode())
        self.count("a.log")
        self.assertEqual(1, len({one["_id"] for one in self.base["pages.month"].find({"metadata.other": True})}))
        for name, key in re.findall(r'sh\.shardCollection\("\w+\.([\w.]+)", ({.*})\)', self.admin("shard")):
            for document in self.base[name].find():
                for path in bson.json_util.loads(key):
                    at = document
                    for part in path.split("."):
                        self.assertIn(part, at, f"{name} {document['_id']}")
                        at = at[part]

    def test_a_server_that_cannot_says_so(self):
        self.assertEqual("", self.admin("shard", "--apply", status=EX_UNAVAILABLE))
        self.assertRegex(self.err, "store.url must name a mongos: .*no such command: 'enableSharding'")
        self.assertEqual([], self.base.list_collection_names())
        self.assertIn("no mongos", self.admin("shard"))


if __name__ == "__main__":
    main()
