// What the page shows is what the command says, of archives that are whole, damaged, no text, and large.

import assert from "node:assert/strict";
import { cpSync, linkSync, mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  archive,
  assertAgrees,
  assertQuiet,
  drop,
  launch,
  more,
  open,
  outcome,
  sampleWorkspace,
  strangers,
  temporary,
  verify,
  write,
  writeLargeArchive,
} from "./harness.mjs";

/** The records that are shown, all of them. */
async function records(page) {
  await page.locator(".record").first().waitFor();
  await more(page, "Show more records");
  return page.locator(".record").evaluateAll((shown) =>
    shown.map((record) => ({
      who: record.querySelector(".who").textContent,
      badges: [...record.querySelectorAll(".badge")].map((badge) => badge.textContent),
      time: record.querySelector(".time")?.textContent,
      said: record.querySelector(".said")?.textContent,
      id: record.querySelector(".details .foreign").textContent,
    })),
  );
}

test("the page", async (context) => {
  const { browser, caught } = await launch(context);
  const directory = temporary(context);
  const { workspace, turns } = sampleWorkspace(directory);
  const archives = join(workspace, "sources/openprogram/_v2");
  const repair = join(archives, "repair.md");

  await context.test("a whole workspace: figures, speakers, conversations, and every word", async () => {
    const tab = await open(browser);
    const { page } = tab;
    await page.setInputFiles("#folder", workspace);
    const shown = await outcome(page);
    assert.equal(shown.verdict, "Whole");
    assertAgrees(shown, verify(workspace));
    assert.deepEqual(
      shown.trusted.map(({ name, figures }) => `${name}: ${figures}`),
      [
        "Ada u-1: 16 records in 3 files",
        "Tom u-2: 13 records in 2 files",
        "林悦 u-3: 11 records in 2 files",
        "Mate mate: 10 records in 3 files",
      ],
    );
    assert.deepEqual(shown.hints.map(({ name }) => name), ["Pieter tg:88120"]);
    assert.deepEqual(shown.unnamed, []);
    assert.deepEqual(
      shown.conversations.map(({ name, figures }) => `${name}: ${figures}`),
      ["harbour:launch channel-telegram: 5 records", "预算 openprogram: 10 records", "repair openprogram: 37 records"],
    );

    // A conversation, to the last character: what archives hold is LF, CR is one of their characters.
    await page.getByRole("button", { name: "repair openprogram" }).click();
    const said = (thread) => turns.filter((turn) => turn.thread === thread);
    const expected = said("repair").map(({ id, text, time, speaker }) => ({
      who: `${speaker.display} ${speaker.id}`,
      badges: ["trusted"],
      time,
      said: text,
      id: `openprogram/repair/${id}`,
    }));
    assert.deepEqual(await records(page), expected);

    // A speaker whom nobody has vouched for.
    await page.getByRole("button", { name: "Pieter tg:88120" }).click();
    await page.getByRole("heading", { name: "Records: Pieter" }).waitFor();
    const hints = await records(page);
    const pieter = turns.filter(({ speaker }) => speaker?.id === "tg:88120");
    assert.deepEqual(hints.map(({ said }) => said), pieter.map(({ text }) => text));
    assert.ok(hints.every(({ badges }) => badges.join() === "hint"));

    await page.reload();
    await page.setInputFiles("#folder", workspace);
    await outcome(page);
    await page.getByRole("button", { name: "Show all, in the order read" }).click();
    assert.equal((await records(page)).length, turns.length);
    assertQuiet(tab);
    await tab.close();
  });

  await context.test("dropped instead of chosen it is the same", async () => {
    const tab = await open(browser);
    await drop(tab.page, workspace);
    assertAgrees(await outcome(tab.page), verify(workspace));
    // Two directories, and a file: none of them is the workspace, so paths begin with their names.
    const other = join(directory, "other/memory");
    cpSync(workspace, other, { recursive: true });
    const alone = join(directory, "alone.md");
    cpSync(repair, alone);
    await drop(tab.page, workspace, other, alone);
    await tab.page.locator("body[data-state=working]").waitFor({ state: "detached" });
    const shown = await outcome(tab.page);
    assert.equal(shown.figures["Archives"], "7");
    assert.deepEqual(shown.findings.map(({ code, path }) => `${code} ${path}`), ["location-unchecked alone.md"]);
    assert.ok(shown.conversations.some(({ path }) => /^memory \(\d\)\/sources\/openprogram\/_v2\/repair.md$/.test(path)));
    assertQuiet(tab);
    await tab.close();
  });

  await context.test("a damaged workspace: every finding with its line, and what is whole", async () => {
    const damaged = join(directory, "damaged");
    cpSync(workspace, damaged, { recursive: true });
    const [first, second] = readdirSync(join(damaged, "sources/openprogram/_v2"));
    const at = (name) => join(damaged, "sources/openprogram/_v2", name);
    const bytes = readFileSync(at(first));
    writeFileSync(at(first), bytes.subarray(0, bytes.length / 2));
    const text = readFileSync(at(second), "utf8");
    writeFileSync(at(second), text.replace(/record-lines:1 -->(?=[^]{3000})/g, (lines, where) => (where > 4000 ? "record-lines:0 -->" : lines)));
    write(join(damaged, "topics/no text.md"), Buffer.from("# A\n\nok\nb\xff\xfed\n", "latin1"));
    write(join(damaged, "sources/old/thread.md"), "[] user: hello\n");
    // Empty, because the command reads such files for the revision, and the page does not.
    write(join(damaged, "journal/2024.md"), "");
    write(join(damaged, "sources/p/_v2/empty.md"), "");
    const tab = await open(browser);
    await tab.page.setInputFiles("#folder", damaged);
    const shown = await outcome(tab.page);
    assert.equal(shown.verdict, "Damaged");
    const said = verify(damaged);
    assertAgrees(shown, said);
    const codes = new Set(said.findings.map(({ code }) => code));
    for (const code of ["truncated-frame", "bad-record-count", "invalid-utf8", "old-layout", "empty-archive"]) {
      assert.ok(codes.has(code), `nothing was damaged into ${code}`);
    }
    assert.deepEqual(shown.conversations.map(({ badges }) => badges.join()), ["", "damaged", "damaged"]);
    // What comes before the damage can be read.
    await tab.page.locator("#conversations .rows button").last().click();
    const kept = await records(tab.page);
    assert.ok(kept.length > 3 && kept.every(({ said }) => said !== undefined));
    assertQuiet(tab);
    await tab.close();
  });

  await context.test("topics: every fault with its line, and what is cited is looked for", async () => {
    const faulty = join(directory, "faulty");
    cpSync(workspace, faulty, { recursive: true });
    const anchor = /<a id="(source-[0-9a-f]{16})">/.exec(readFileSync(repair, "utf8"))[1];
    const place = `../sources/openprogram/_v2/repair.md#${anchor}`;
    write(
      join(faulty, "topics/good.md"),
      `# Good\n\nA claim.[^e-1] ^good0001\n\nAnother, of [one](#^good0001).[^e-1] ^good0002\n\n[^e-1]: Time: \`2026\`; Sources: [x](${place})\n`,
    );
    write(
      join(faulty, "topics/bad.md"),
      `# Bad\n\nNo id.\n\nTwice.[^e-1] ^good0001\n\nTo [none](#^gone0000).[^e-2][^e-3] ^bad00001\n\n` +
        `[^e-1]: Time: \`2026-02-30\`; Sources: [x](${place})\n[^e-2]: Time: \`2026\`; Sources: [x](${place.slice(0, -1)}g)\n\`\`\`\n`,
    );
    const tab = await open(browser);
    await tab.page.setInputFiles("#folder", faulty);
    const shown = await outcome(tab.page);
    const said = verify(faulty);
    const codes = new Set(said.findings.map(({ code }) => code));
    for (const code of [
      "missing-block-id",
      "duplicate-block-id",
      "invalid-time",
      "unresolved-source",
      "undefined-footnote",
      "dangling-block-link",
      "unclosed-fence",
    ]) {
      assert.ok(codes.has(code), `there is no ${code} in ${JSON.stringify(said.findings)}`);
    }
    // Whether a view is what topics make of it, the page does not ask: it would have to make them.
    assertAgrees(shown, { ...said, findings: said.findings.filter(({ code }) => code !== "stale-view") });
    assertQuiet(tab);
    await tab.close();
  });

  await context.test("files chosen by themselves, one of them no text at all", async () => {
    const alone = join(directory, "by itself");
    mkdirSync(alone);
    cpSync(repair, join(alone, "repair.md"));
    writeFileSync(join(alone, "noise.bin"), Buffer.from(Array.from({ length: 5000 }, (_, at) => (at * 7919) % 256)));
    const bytes = readFileSync(repair);
    bytes[bytes.length - 100] = 0xc3;
    writeFileSync(join(alone, "latin.md"), bytes);
    const tab = await open(browser);
    for (const file of ["repair.md", "noise.bin", "latin.md"]) {
      await tab.page.setInputFiles("#files", join(alone, file));
      await tab.page.waitForFunction((file) => document.querySelector(".finding .place")?.textContent.includes(file), file);
      const path = (path) => path.slice(path.lastIndexOf("/") + 1);
      assertAgrees(await outcome(tab.page), verify(join(alone, file)), path);
    }
    assertQuiet(tab);
    await tab.close();
  });

  await context.test("nothing of memory among the files", async () => {
    const nothing = join(directory, "nothing");
    write(join(nothing, "README.md"), "hello");
    write(join(nothing, "a/b/picture.png"), Buffer.of(0x89, 0x50));
    const tab = await open(browser);
    await tab.page.setInputFiles("#folder", nothing);
    const shown = await outcome(tab.page);
    assert.equal(shown.verdict, "Nothing to check");
    assert.equal(shown.figures["Files left alone"], "2");
    assertQuiet(tab);
    await tab.close();
  });

  await context.test("links and names that are no text", async () => {
    const strange = join(directory, "strange");
    cpSync(workspace, strange, { recursive: true });
    symlinkSync(repair, join(strange, "sources/link.md"));
    symlinkSync("..", join(strange, "sources/up"));
    writeFileSync(Buffer.from(`${strange}/sources/b\xffd.md`, "latin1"), "x");
    const said = verify(strange);
    const codes = said.findings.map(({ code }) => code).sort();
    assert.deepEqual(codes, ["symlink-ignored", "symlink-ignored", "undecodable-name"]);
    const tab = await open(browser);
    await drop(tab.page, strange);
    const shown = await outcome(tab.page);
    // A browser says nothing of links, and follows none.
    assert.deepEqual(shown.findings.map(({ code }) => code), ["undecodable-name"]);
    assert.equal(shown.figures["Archives"], said.counts.source_files.toString());
    assertQuiet(tab);
    await tab.close();
  });

  await context.test("a file that changes while it is looked at", async () => {
    const changing = join(directory, "changing");
    cpSync(workspace, changing, { recursive: true });
    const tab = await open(browser);
    const { page } = tab;
    await page.setInputFiles("#folder", changing);
    await outcome(page);
    const file = join(changing, "sources/openprogram/_v2/repair.md");
    writeFileSync(file, readFileSync(file, "utf8").replaceAll("Ada", "Eve"));
    await page.getByRole("button", { name: "repair openprogram" }).click();
    await page.getByText("has changed since it was checked").first().waitFor();
    assert.ok((await records(page)).every(({ said }) => said === undefined));
    await tab.close();
  });

  await context.test("records that are long, and many of them", async () => {
    const long = join(directory, "long");
    const text = Array.from({ length: 9000 }, (_, line) => `Zeile ${line} 喷油嘴🚤 ends here`).join("\n");
    archive(long, [
      { provider: "p", thread: "t", id: "long", role: "user", text, trust: "trusted" },
      { provider: "p", thread: "t", id: "empty", role: "tool", text: "", trust: "pending" },
    ]);
    const tab = await open(browser);
    const { page } = tab;
    await page.setInputFiles("#folder", long);
    const shown = await outcome(page);
    assert.deepEqual(shown.unnamed.map(({ name }) => name), ["user", "tool"]);
    await page.getByRole("button", { name: "t p" }).click();
    assert.ok((await records(page))[0].said.length < 5000, "only the beginning at first");
    await more(page, "Show more of this record");
    const [first, second] = await records(page);
    assert.equal(first.said, text);
    assert.deepEqual([second.said, second.badges.join()], ["", "label only,pending"]);
    assertQuiet(tab);
    await tab.close();
  });

  await context.test("50 MB: quick, small, and the page stays responsive", async () => {
    const large = join(directory, "large");
    const path = join(large, "sources/bench/_v2/thread.md");
    const count = writeLargeArchive(path, 50_000_000);
    assert.ok(statSync(path).size > 49_000_000 && count > 70_000);
    const said = verify(large);
    const tab = await open(browser);
    const { page } = tab;
    await page.evaluate(() => {
      window.longest = 0;
      let before = performance.now();
      setInterval(() => {
        window.longest = Math.max(window.longest, performance.now() - before);
        before = performance.now();
      }, 5);
    });
    await page.setInputFiles("#folder", large);
    const shown = await outcome(page);
    assertAgrees(shown, said);
    assert.equal(shown.figures["Records"], count.toLocaleString("en"));
    const longest = await page.evaluate(() => window.longest);
    context.diagnostic(`50 MB: ${shown.figures["Time"]}, ${shown.figures["Memory"]} of the component, longest pause ${Math.round(longest)} ms`);
    assert.ok(longest < 2000, `the page did not answer for ${longest} ms`);
    const [memory, unit] = shown.figures["Memory"].split(" ");
    assert.ok(unit === "MB" && Number(memory) < 32, shown.figures["Memory"]);
    // The last of its records, from the end of the file.
    await page.getByRole("button", { name: "Ada Brandt u-1" }).click();
    const first = page.locator(".record .said").first();
    assert.match(await first.textContent(), /^1: the keel bolts/);
    assertQuiet(tab);
    await tab.close();

    // Many of it: long enough to be stopped.
    for (let copy = 0; copy < 12; copy += 1) linkSync(path, join(large, `copy${copy}.md`));
    const copies = readdirSync(large).filter((name) => name.endsWith(".md")).map((name) => join(large, name));
    const stopped = await open(browser);
    await stopped.page.setInputFiles("#files", copies);
    await stopped.page.locator("#working-path .foreign").waitFor();
    await stopped.page.getByRole("button", { name: "Stop" }).click();
    const partial = await outcome(stopped.page);
    assert.equal(partial.verdict, "Stopped");
    assert.ok(Number(partial.figures["Files not finished"]) > 0);
    // Of the file it was stopped in nothing is said that is not so.
    assert.ok(partial.findings.every(({ code }) => code === "location-unchecked"));
    const another = await outcome(stopped.page);
    assert.deepEqual(another, partial, "and it stays so");
    await stopped.page.setInputFiles("#files", repair);
    await stopped.page.getByRole("heading", { name: "Whole" }).waitFor();
    assertQuiet(stopped);
    await stopped.close();
  });

  await context.test("the keyboard reaches everything, everything has a name, and colours can be read", async () => {
    for (const colorScheme of ["light", "dark"]) {
      const tab = await open(browser, { colorScheme });
      const { page } = tab;
      await page.setInputFiles("#folder", join(directory, "damaged"));
      await outcome(page);
      assert.equal(await page.evaluate(() => document.activeElement.id), "verdict", "the outcome is where one goes on");
      await page.getByRole("button", { name: "repair openprogram" }).click();
      await page.locator(".record").first().waitFor();
      assert.equal(await page.evaluate(() => document.activeElement.id), "records-heading");

      const unreachable = await page.evaluate(() => {
        const controls = [...document.querySelectorAll("button, input, a")].filter((control) => control.checkVisibility());
        return controls.filter((control) => control.tabIndex < 0 || !(control.labels?.[0] ?? control).textContent.trim());
      });
      assert.deepEqual(unreachable, []);
      await page.locator("#folder").focus();
      await page.keyboard.press("Tab");
      assert.equal(await page.evaluate(() => document.activeElement.id), "files");
      for (const heading of ["Files", "Damaged", "Findings", "Who spoke", "Conversations", /^Records/]) {
        await page.getByRole("heading", { name: heading, level: 2 }).waitFor();
      }

      const poor = await page.evaluate(() => {
        const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
        const luminance = (colour) => {
          const [red, green, blue] = channels(colour).map((channel) => {
            const part = channel / 255;
            return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
          });
          return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
        };
        const ground = (found) => {
          const colour = getComputedStyle(found).backgroundColor;
          return channels(colour)[3] === 0 ? ground(found.parentElement) : colour;
        };
        const texts = [...document.querySelectorAll("body *")].filter((found) => {
          const own = [...found.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
          return own && found.checkVisibility() && !["SCRIPT", "NOSCRIPT", "STYLE"].includes(found.tagName);
        });
        return texts.flatMap((found) => {
          const [light, dark] = [getComputedStyle(found).color, ground(found)].map(luminance).sort((a, b) => b - a);
          const ratio = (light + 0.05) / (dark + 0.05);
          return ratio < 4.5 ? [`${found.tagName}.${found.className} ${ratio.toFixed(2)}`] : [];
        });
      });
      assert.deepEqual([...new Set(poor)], [], colorScheme);
      assertQuiet(tab);
      await tab.close();
    }
  });

  assert.deepEqual(strangers(caught), [], "nothing tried to leave");
});
