// Types of the API's responses (see api/docs/openapi.yaml) and of the page's own data.

export type Interval = [number | null, number | null];

export interface Estimate {
  uncapped?: number;
  value: number | null;
  standardError: number | null;
  interval: Interval | null;
  reason?: string;
}

export interface Effect {
  value: number | null;
  observed?: number;
  interval: Interval | null;
  reason?: string;
}

export interface Prior {
  mean: number;
  standardDeviation: number;
  campaigns?: number;
}

export interface Comparison {
  difference: Effect;
  improvement: Effect;
  frequentist?: { pValue: number | null; adjustedPValue: number | null; reason?: string };
  sequential?: {
    look: number | null;
    end: string | null;
    pValue: number | null;
    difference: Interval | null;
    improvement: Interval | null;
    significant: boolean;
    reason?: string;
    improvementReason?: string;
  };
  bayesian?: {
    chanceToBeatControl: number | null;
    chanceToBeBest: number | null;
    expectedLoss: number | null;
    expectedLossControl: number | null;
    prior?: Prior;
    reason?: string;
  };
  significant: boolean;
  verdict: "better" | "worse" | "inconclusive" | "insufficientData";
  conclusive?: boolean;
  reasons: string[];
  complement?: Complement;
}

// Complement is the comparison among the visitors that a segment lacks.
export interface Complement {
  visitors: number;
  controlVisitors: number;
  improvement: Effect;
  improvementDifference: Effect;
}

export interface Counts {
  visitors: number;
  views: number;
  convertedVisitors: number;
  goalsReached: number;
  value: number | null; // null: some amounts are in another currency
  profit: number | null;
  extraValue: number | null;
  clicks?: number;
  submits?: number;
  completions?: number;
  conversions?: number;
  contacts?: number;
}

export type MetricName = keyof typeof import("./words.js").metrics;

export interface Variation extends Counts {
  id: number;
  name: string;
  control: boolean;
  share: number;
  metrics: Record<MetricName, Estimate>;
  comparison: Comparison | null;
}

export interface SampleRatio {
  pValue: number | null;
  expected: number[] | null;
  observed: number[] | null;
  mismatch: boolean;
  reason?: string;
}

// SplitCause says where a sample ratio mismatch comes from. parts has the worst first.
export interface SplitCause {
  text: string;
  parts: { attribute: string; value: string; visitors: number; observed: number[]; expected: number[]; pValue: number | null; mismatch: boolean }[];
}

// Bin has the goal events of the variations with values from from up to to. null is no bound.
export interface Bin {
  from: number | null;
  to: number | null;
  goals: number[];
}

export interface Checks {
  sampleRatio: SampleRatio | null;
  splitCause?: SplitCause;
  leak: { variationId: number; visitors: number }[];
  automated?: { visitors: number; warning: boolean };
  multipleExposures: { rule: "exclude" | "first"; visitors: number; share: number; pValue: number | null; warning: boolean };
  unknownVariations: { variationId: number; visitors: number; events: number }[];
  cap?: { rule: string; amount: number | null; visitors: number; valueRemoved: number | null; reason?: string };
  outliers: { removed: number; lower: number | null; upper: number | null; reason?: string } | null;
  window: { earlierVisitors: number };
  fullWeeks?: { days: number; weeks: number; complete: boolean };
  warnings: { code: string; message: string }[];
}

export interface Power {
  requiredVisitors: number | null;
  progress: number | null;
  remainingVisitors: number | null;
  daysRemaining: number | null;
  minimumDetectableEffect: number | null;
  power: number | null;
  reason?: string;
}

// Conclusion is the overall result. look is the number of the look that concluded, and
// decidedAt its end.
export interface Conclusion {
  status: "winner" | "loser" | "inconclusive" | "insufficientData" | "invalid";
  variationId: number | null;
  look?: number;
  decidedAt?: string;
  reasons: string[];
  text: string;
}

// Look is what the comparisons showed at the end of a week. tau is the elapsed fraction of
// the plan.
export interface Look {
  number: number;
  end: string;
  tau: number;
  visitors: number;
  recordedAt?: string;
  variations: LookVariation[];
}

export interface LookVariation {
  id: number;
  criticalValue: number | null;
  z: number | null;
  pValue: number | null;
  difference: Effect;
  improvement: Effect;
  chanceToBeatControl?: number;
  significant: boolean;
  reason?: string;
  recomputed?: { difference: Effect; improvement: Effect; significant: boolean };
}

// Decision is what to do with the campaign.
export interface Decision {
  status: "invalid" | "rollBack" | "ship" | "noDifference" | "noWinner" | "keepRunning";
  variationId: number | null;
  decidedAt?: string;
  reasons: { code: string; goalId?: number; metric?: MetricName; text: string }[];
  text: string;
}

export interface ScorecardRow {
  conversionWindow?: AgeRange;
  goal: { id: number; name: string } | null;
  metric: MetricName;
  role: "primary" | "guardrail" | "secondary" | "other";
  direction: "up" | "down";
  variations: ScorecardVariation[];
}

/** What a variation for everybody is worth: as observed, and as expected after what the other campaigns show. */
export interface WorthItem {
  variationId: number;
  of: "tested" | "allTraffic"; // the visitors that the worth is about
  allocation?: number;
  observed: { lift: number; perMonth: number | null; valuePerMonth: number | null } | null;
  expected: { lift: WorthEstimate; perMonth: WorthEstimate | null; valuePerMonth: WorthEstimate | null } | null;
  chance: number | null;
  reason?: string;
  text: string;
  observedText: string;
}

export interface WorthSum { observed: number; expected: number; interval: [number, number] }

export interface CurvePoint extends WorthSum { date: string }

/** A treatment of the programme, with what was done after its campaign. */
export interface ProgrammeItem extends WorthItem {
  campaignId?: number;
  widgetId?: number;
  experimentId?: number;
  campaign: string;
  name: string;
  shipped: boolean;
  outcome: { outcome: string; variationId?: number; date: string; note?: string; declared: boolean };
}

export interface Programme {
  goalName?: string;
  currency?: string;
  asOf: string | null;
  campaigns: { pooled: number; shipped: number; excludedByData: number; excludedByHand: number };
  total: { of?: "tested" | "allTraffic"; perMonth: WorthSum | null; valuePerMonth: WorthSum | null };
  curve: CurvePoint[];
  advice: { plans: PlanChance[] } | null;
  sentences: string[];
  items: ProgrammeItem[];
}

// PlanChance says how often ideas win in a plan, and what a week of it adds.
export interface PlanChance { weeks: number; winRate: { observed: number; expected: number }; worthPerWeek: number | null }

// Plan says what experiments of several lengths would find.
export interface Plan {
  goal: { id: number; name: string };
  currency?: string;
  rules: { mde: number; power: number };
  weeks: (PlanChance & { visitors: number; mde: number | null })[];
  best: number | null;
  requiredVisitors: number | null;
  days: number | null;
  priors?: { requiredVisitors: number; days: number; text: string }[];
  worthReason?: string;
  sentences: string[];
}

export interface WorthEstimate { value: number; interval: [number, number] }

export interface ScorecardVariation {
  id: number;
  name: string;
  control: boolean;
  estimate: Estimate;
  comparison: Comparison | null;
  qValue?: number;
  discovered?: boolean;
  guardrail?: { status: "safe" | "harmed" | "notYetKnown"; margin?: number; absoluteMargin?: number; lower: number | null; upper: number | null; requiredVisitors: number | null; decidedAt?: string; reason?: string };
}

export interface Cell {
  totals: Counts;
  variations: Variation[];
  conclusion: Conclusion | null;
  checks: Checks;
}

export interface Point {
  time: string;
  variations: Variation[];
}

export interface AgeRange {
  from: string;
  to: string;
  text: string;
}

export interface CurveEffects {
  difference: Effect;
  improvement: Effect;
}

export interface Curve {
  cohort: { days: number; visitors: number; immatureVisitors: number };
  points: { day: number; variations: { id: number; value: number | null; comparison: CurveEffects | null; simultaneous: CurveEffects | null }[] }[];
  novelty: { id: number; text: string; finding?: "fades" | "grows" }[];
}

export interface Results extends Cell {
  goal: { id: number; name: string } | null;
  compareMetric: MetricName | null;
  methodology: "frequentist" | "bayesian";
  significanceLevel: number;
  dimension: string | null;
  filters: Record<string, unknown>;
  window: { from: string | null; to: string | null };
  conversionWindow: AgeRange | null;
  generatedAt: string;
  dataThrough: string | null;
  newestEvent: string | null;
  stale: boolean;
  waiting?: { events: number; reason: "folding" | "full" };
  looks?: Look[];
  nextLook?: { number: number; end: string; publishedAt: string };
  power?: Power;
  heterogeneity?: { segments: number; bayesFactor: number | null; pValue?: number; reason?: string; text: string };
  breakdown?: (Cell & { value: string })[];
  series?: Point[];
  curve?: Curve;
  distribution?: { bins: Bin[] };
  decision?: Decision;
  scorecard?: ScorecardRow[];
  worth?: { pool: { campaigns: number; typicalEffect: WorthEstimate }; items: WorthItem[]; poolText: string; currency?: string };
}

export interface Experiment {
  id: number;
  name?: string;
  active: boolean;
  startDate?: string;
  endDate?: string;
  variations?: { id: number; imageUrl?: string }[];
}

// Item is a campaign or a widget.
export interface Item extends Experiment {
  key?: string; // from which the id is computed
  name: string;
  type: string;
  views: number;
  clicks?: number;
  conversions?: number;
  goalsReached: number;
  value?: number;
  trafficAllocation?: number;
  experiments?: Experiment[];
  hypothesis?: string;
  owner?: string;
  tags?: string[];
  autoStop?: string;
  primaryGoalId?: number;
  status?: Status | Status[];
}

// Status is the summary of a report in a list. A widget has one for each experiment.
export interface Status {
  experimentId?: number;
  decision: Decision | null;
  variationId: number | null;
  lift: Effect | null;
  visitors: number | null;
  days: number | null;
  health: string[];
  computedAt: string | null;
  reason?: string;
}

// Listed is a campaign or widget of the start page.
export interface Listed extends Omit<Item, "status"> {
  kind: "campaign" | "widget";
  status?: Status;
}

export interface Website {
  id: number;
  domain: string;
  currency?: string;
  timezone?: string;
}

export interface Goal {
  id: number;
  key?: string;
  name: string;
}

export interface ObservedValues {
  dimension: string;
  values: { value: string; visitors: number }[];
}

export interface Fault {
  in: string;
  name: string;
  value: string;
  detail: string;
}

// ProblemBody is the body of an error (RFC 9457).
export interface ProblemBody {
  title?: string;
  detail?: string;
  code?: string;
  errors?: Fault[];
  requestId?: string;
}

// Response is a successful response. If unchanged is true, body is not set.
export interface Response<T> {
  body?: T;
  unchanged?: boolean;
  stale?: boolean;
  etag?: string | null;
  total?: number;
}

export interface RequestOptions {
  method?: string;
  body?: unknown; // sent as JSON
  match?: string; // the ETag that the change is based on
  accept?: string;
  etag?: string | null;
  signal?: AbortSignal;
  token?: string | null;
}

// SharedView is what the page of a share link shows: its address, and fields of the website,
// which the link cannot request.
export interface SharedView {
  address: string;
  currency?: string;
  timezone?: string;
}

// ShareIds are the ids of what a share link shows.
export interface ShareIds {
  campaignId?: number;
  widgetId?: number;
  experimentId?: number;
}

// ShareLink is a share link. Only a new one has its url.
export interface ShareLink extends ShareIds {
  id: number;
  createdAt: string;
  expiresAt: string;
  url?: string;
}

// Subject is a campaign, a widget or an experiment. home is the API path of the
// campaign or widget, path the API path that results are requested from.
export interface Subject {
  kind: "campaign" | "widget" | "experiment";
  home: string;
  path: string;
  experiment?: string;
}

export type Pairs = [string, string | number | undefined | null][];

// Go shows another view of the page.
export type Go = (next: string | import("./route.js").Route, options?: { replace?: boolean }) => void;

// Link has the attributes of a link within the page.
export interface Link {
  href: string;
  onClick: (event: MouseEvent) => void;
}

// Entry is the value of a curve at a point, with its interval.
export type Entry = { value: number | null; interval: Interval | null } | undefined;

// Line is a curve of a chart, with one entry for each point. index is the index of its
// variation.
export interface Line {
  index: number;
  name: string;
  thin?: boolean;
  entries: Entry[];
}

// Beam is the interval of a variation at a look, in seconds. null is an open end.
export interface Beam {
  index: number;
  at: number;
  value: number | null;
  interval: Interval;
}

// View is what the chart over time shows.
export interface View {
  name: "lift" | "metric" | "visitors" | "conversions" | "split";
  label: string; // of the switch
  caption: string;
  lines: Line[]; // curves
  beams: Beam[];
  cumulative: boolean;
  marks: number[]; // values that the axis contains
  write: (value: number | null, interval: Interval | null) => string;
  span: (interval: Interval | null) => string;
  tick: (x: number) => string;
}

// Segment is a variation among the visitors with one value of the dimension.
export interface Segment {
  cell: Cell & { value: string };
  control: Variation;
  variation: Variation;
  comparison: Comparison;
  index: number;
}

// Order is the order of the segments.
export interface Order {
  by: "value" | "visitors" | "lift";
  down: boolean;
}

export type Scale = ReturnType<typeof import("./scale.js").scaleOf>;

/** Delivery is the state of the delivery of a message to a webhook. */
export interface Delivery { webhookId: number; host: string; at: string; outcome: string; status: number; detail?: string; attempts: number }

/** Message reports a decision, a failed check, or a start or stop. */
export interface Message {
  message: string; event: string; recordedAt: string; path: string; deliveries: Delivery[];
  data: { name?: string; websiteId?: number; text: string; worth?: WorthItem };
}

/** Catalogue is the part of the catalogue that the page changes. */
export interface Catalogue { accounts: { websites?: { id?: number; campaigns?: { id?: number; key?: string; autoStop?: string }[] }[] }[] }

/** Source is what arrived from a sender of events since the server started. */
export interface Source {
  id: number; name: string; websiteId: number; mapping: string; lastRequest: string | null;
  accepted: number; purchases: number; noVisitor: number; ignored: Record<string, number>; rejected: number;
}

/** Sender is a product that can send events, and what to paste there, with {KEY} for the key. */
export interface Sender { name: string; title: string; text: string }

export interface Sources {
  sources: Source[]; warnings: { websiteId: number; message: string }[]; senders: Sender[];
  orders: { websiteId: number; goalId: number; text: string }[];
}

/** Discovered is a campaign in the events that the catalogue does not declare. */
export interface Discovered {
  websiteId: number; campaignId: number; key?: string; source: string; firstView: string; visitors: number;
  variations: { id: number; key?: string; visitors: number; share: number }[]; equalSplitPValue: number | null;
}
