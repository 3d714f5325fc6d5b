#!/usr/bin/env python3
"""docs/examples/monitoring.yaml over 70 days into MongoDB; as test_monitoring.py, of fewer samples.

TALLYD_MONGO names another server.
"""

from mongocase import MongoCase, main
from test_monitoring import MINUTE, Monitoring

try:
    from bson.raw_bson import RawBSONDocument
    from bson.codec_options import CodecOptions
except ImportError:
    pass  # main() begins again by a Python that has it


class InMongo(MongoCase, Monitoring):
    clients, every_s = 1, 5 * MINUTE
    hours_an_import = 120  # each waits for two seconds before it lets go, as other daemons must know first

    def size(self):
        raw = CodecOptions(document_class=RawBSONDocument)
        lengths = [len(one.raw) for name in self.base.list_collection_names()
                   for one in self.base.get_collection(name, codec_options=raw).find()]
        return {"documents": len(lengths), "bytes": sum(lengths)}

    def test_70_days(self):
        self.check_days()


if __name__ == "__main__":
    main()
