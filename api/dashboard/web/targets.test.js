import assert from "node:assert/strict";
import test from "node:test";
import { found, targetsOf } from "./targets.js";

const websites = [{ id: 1, domain: "shop.example.com" }, { id: 2, domain: "wine.example.com" }];
const items = [
  { websiteId: 1, campaignId: 12, name: "Free delivery banner", owner: "Ada", tags: ["checkout"] },
  { websiteId: 2, campaignId: 41, name: "Delivery, free", key: "free-wine", owner: "Bo" },
  { websiteId: 2, widgetId: 7, experimentId: 2, name: "Popup: Wording" },
  { websiteId: 2, campaignId: 9, archived: true },
];

test("the search finds websites, campaigns, owners, tags and keys", () => {
  const all = targetsOf(websites, items);
  const names = (text) => found(all, text).map(({ name }) => name);
  assert.deepEqual(names("wine"), ["wine.example.com", "Delivery, free", "Popup: Wording", "Owner Bo"]);
  assert.deepEqual(names("FREE  del"), ["Free delivery banner", "Delivery, free"]);
  assert.deepEqual(names("free-wine"), ["Delivery, free"]);
  assert.deepEqual(names("41"), ["Delivery, free"]);
  assert.deepEqual(names("ada"), ["Owner Ada", "Free delivery banner"]);
  assert.deepEqual(names("#checkout"), ["Free delivery banner"]);
  assert.deepEqual(names("nothing"), []);
  assert.equal(found(all, "word")[0].address, "/?widget=7&experiment=2&websiteId=2");
  assert.equal(found(all, "owner bo").length, 0, "the word owner is no text of a campaign");
});

test("an account with one website needs no website in addresses", () => {
  assert.equal(found(targetsOf(websites.slice(0, 1), items.slice(0, 1)), "free")[0].address, "/?campaign=12");
});
