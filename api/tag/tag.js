// The tag of a page. It reads what the page already reports to Google, events of gtag and of Google Tag Manager in
// dataLayer, and sends those of experiments and of the shop to the source whose key is in its address. It sets no cookie,
// stores nothing, and sends nothing before the cookie with the visitor's id exists.
const script = document.currentScript;
const source = script.src.replace(/\.js[^/]*$/, "");
const cookie = script.dataset.visitor || "_ga";
const layer = (window.dataLayer ||= []);
const events = /^(experience_impression|experiment_viewed|purchase|add_to_cart|begin_checkout|sign_up|generate_lead)$/;
const browsers = { edge: /Edg/, opera: /OPR/, firefox: /Firefox|FxiOS/, chrome: /Chrome|CriOS/, safari: /Safari/ };
const mostWaiting = 200;
const mostLines = 50; // of an order
let queue = [];
let sending = []; // the events of the request under way
let timer = 0;
let failures = 0;
let answered = 0; // when the last request succeeded

// visitor returns the visitor's id: the cookie without the prefix of Google's, or without quotes.
const visitor = () => {
  try {
    const own = document.cookie.split("; ").find((c) => c.startsWith(cookie + "="));
    return decodeURIComponent(own.slice(cookie.length + 1)).replace(/^GA\d\.[\d-]+\.|"/g, "");
  } catch {
    return ""; // no cookie, or one that cannot be decoded
  }
};

// take keeps an entry of dataLayer, if it is one of the events.
const take = (entry) => {
  const isCall = entry[0] === "event"; // of gtag
  const name = isCall ? entry[1] : entry.event;
  const fields = isCall ? entry[2] || {} : { ...entry, ...entry.ecommerce, ...entry.eventModel };
  if (queue.length >= mostWaiting || !events.test(name)) return;
  queue.push({
    id: Date.now().toString(36) + Math.random().toString(36).slice(2),
    at: performance.now(),
    event: name,
    variant: fields.exp_variant_string,
    experiment: fields.experiment_id,
    variation: fields.variation_id,
    value: fields.value,
    currency: fields.currency,
    order: fields.transaction_id,
    coupon: fields.coupon,
    payment: fields.payment_type,
    shipping: fields.shipping_tier,
    items: name === "purchase" ? linesOf(fields.items) : undefined,
  });
  sendIn(300);
};

// linesOf returns the lines of an order, with what the source takes of them.
const linesOf = (items) =>
  Array.isArray(items)
    ? items.slice(0, mostLines).map((line) => {
        const { item_id, item_variant, item_category, item_brand, item_name, price, quantity } = Object(line);
        return { item_id, item_variant, item_category, item_brand, item_name, price, quantity };
      })
    : undefined;

const takeSafely = (entry) => {
  try {
    take(entry);
  } catch {} // eslint-disable-line no-empty -- the page must not notice
};

const sendIn = (milliseconds) => (timer ||= setTimeout(send, milliseconds));

// bodyOf returns the request. Its events have their age, which needs no clock that is right. A slow request makes its
// events later than they were: those of the next request are not before its answer, so a goal stays after its view.
const bodyOf = (batch) => {
  const now = performance.now();
  const agent = navigator.userAgent;
  const query = new URLSearchParams(location.search);
  return JSON.stringify({
    visitor: visitor(),
    referrer: document.referrer.split("/")[2],
    device: /iPad|Tablet|Android(?!.*Mobile)/.test(agent) ? "tablet" : /Mobi/.test(agent) ? "mobile" : "desktop",
    browser: (Object.entries(browsers).find(([, pattern]) => pattern.test(agent)) || [])[0],
    source: query.get("utm_source"),
    medium: query.get("utm_medium"),
    campaign: query.get("utm_campaign"),
    batch: batch.map(({ at, ...event }) => {
      return { ...event, age: Math.max(0, Math.floor(now - Math.max(at, answered + 1))) };
    }),
  });
};

// send sends the waiting events, one request after the other. After an error it sends them again: the same ids count
// once.
const send = () => {
  timer = 0;
  if (!queue[0] || sending[0]) return;
  if (!visitor()) return sendIn(2000);
  sending = queue.splice(0, 50);
  fetch(source, { method: "POST", body: bodyOf(sending), keepalive: true, credentials: "omit" })
    .then(({ status }) => {
      if (status === 429 || status > 499) throw status;
      failures = 0;
      answered = performance.now();
      sending = [];
      send();
    })
    .catch(() => {
      queue = [...sending, ...queue].slice(0, mostWaiting);
      sending = [];
      sendIn(1000 * Math.min(60, 2 ** ++failures));
    });
};

if (!layer.lifthouse) { // a second tag on the page would count views twice
  layer.lifthouse = true;
  layer.forEach(takeSafely);
  const push = layer.push;
  layer.push = (...entries) => {
    entries.forEach(takeSafely);
    return push.apply(layer, entries);
  };
  addEventListener("pagehide", () => {
    const left = [...sending, ...queue];
    if (left[0] && visitor() && navigator.sendBeacon(source, bodyOf(left))) queue = [];
  });
}
