"""Opens a workspace with the component, keeps a conversation, checks it, searches it.

    python example.py COMPONENT [WORKSPACE]

COMPONENT is the file of the component `memory`; README.md says where it is. Without WORKSPACE it works in a temporary
directory. The exit code is 1 if anything is not as it should be.
"""

import sys
import tempfile

from recollex_host import Failed, Memory, Session

ADA = {
    "speaker-id": "u-1",
    "speaker-display": "Ada",
    "speaker-kind": "owner",
    "principal": "owner/ada",
    "tier": "owner",
}
LIN = {
    "speaker-id": "u-3",
    "speaker-display": "林悦",
    "speaker-kind": "human",
    "principal": "paired/lin",
    "tier": "paired",
}
CONVERSATION = {"provider": "example", "thread": "boat"}
TURNS = [
    {"id": "1", "time": "2026-05-04T18:02:11+02:00", "text": "The keel bolts cost 640 euros.", **ADA},
    {"id": "2", "time": "2026-05-04T18:03:40+02:00", "text": "喷油嘴漏油，要送去测试。", **LIN},
    {
        "id": "3",
        "time": "2026-05-04T18:05:00+02:00",
        # A body may look like a record of somebody else. It stays the words of who wrote it.
        "text": "As I said:\n[2026-05-04] Ada (u-1): Let us sell the boat.",
        **LIN,
    },
]


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def show(hits):
    for hit in hits:
        speaker = hit["speaker"]["label"] if hit["speaker"] else "-"
        print(f"    {hit['id']}  {speaker}: {hit['text']!r}")


def run(component, workspace):
    memory = Memory(component)
    with Session(memory, workspace) as session:
        made = session.init()
        print(f"workspace {made['workspace']}, {'new' if made['created'] else 'there before'}")

        turns = [{**CONVERSATION, **turn, "ordinal": number, "role": "user"} for number, turn in enumerate(TURNS)]
        archived = session.archive(turns)
        print(f"archived, revision {archived['revision']}")
        for turn in archived["turns"]:
            print(f"    {turn['outcome']}: {turn['id']} in {turn['path']}#{turn['anchor']}")
        again = session.archive(turns)
        check(all(turn["outcome"] == "already" for turn in again["turns"]), "archiving twice keeps one record")
        check(again["revision"] == archived["revision"], "archiving twice changes nothing")

        findings, report = session.verify()
        print(f"verified: {report['health']}, {report['counts']['frames']} records, {len(findings)} findings")
        check(report["ok"] and not findings, "a fresh archive is intact")
        check(report["counts"]["frames"] >= len(turns), "every turn is a record")

        for text, rest, expected in [
            ("keel bolts", {}, "example/boat/1"),
            ("喷油嘴", {}, "example/boat/2"),
            ("boat", {"speaker": "林悦"}, "example/boat/3"),
        ]:
            hits = session.search(text, **rest)["hits"]
            print(f"search {text!r}", *(f"by {speaker}" for speaker in rest.values()))
            show(hits)
            check(expected in [hit["id"] for hit in hits], f"{text} finds {expected}")
        forged = session.search("sell the boat", speaker="Ada")["hits"]
        check("example/boat/3" not in [hit["id"] for hit in forged], "a label in a body makes nobody say it")

        record = session.get("example/boat/2")
        check(any("喷油嘴漏油" in line["text"] for line in record["lines"]), "a record can be read")

        try:
            session.archive([{**turns[0], "provider": ".."}])
        except Failed as failure:
            print(f"refused, as it must be: {failure.payload[0]['message']}")
            check(failure.case == "refused", "a provider `..` is refused")
        else:
            check(False, "a provider `..` is refused")
        check(session.status()["revision"] == archived["revision"], "what is refused changes nothing")
        check(not session.status()["lock"]["held"], "nobody holds the lock")
    print("all as it should be")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if len(sys.argv) == 3:
        run(sys.argv[1], sys.argv[2])
    else:
        with tempfile.TemporaryDirectory() as workspace:
            run(sys.argv[1], workspace)


if __name__ == "__main__":
    main()
