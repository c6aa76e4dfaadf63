// Types of the page. Those of the API's responses are of openapi.d.ts, which .ci/types generates from
// api/docs/openapi.yaml; the others are the page's own.

import type { components } from "./openapi.js";

type Schemas = components["schemas"];

export type Interval = Schemas["Interval"];
export type Estimate = Schemas["Estimate"];
export type Effect = Schemas["Effect"];
export type Comparison = Schemas["Comparison"];
export type Complement = Schemas["Complement"];
export type Counts = Schemas["Counts"] & Partial<Pick<Variation, "clicks" | "submits" | "completions" | "conversions" | "contacts">>;
export type Variation = Schemas["VariationResults"];
export type SampleRatio = Schemas["SampleRatio"];
export type SplitCause = Schemas["SplitCause"];
export type Checks = Schemas["Checks"];
export type Power = Schemas["Power"];
export type Conclusion = Schemas["Conclusion"];
export type Look = Schemas["Look"];
export type LookVariation = Schemas["LookVariation"];
export type Decision = Schemas["Decision"];
export type ScorecardRow = Schemas["ScorecardRow"];
export type ScorecardVariation = Schemas["ScorecardVariation"];
export type WorthItem = Schemas["WorthItem"];
export type WorthNumbers = Schemas["WorthNumbers"];
export type WorthEstimate = Schemas["WorthEstimate"];
export type WorthSum = Schemas["WorthSum"];
export type Programme = Schemas["Programme"];
export type PlanChance = Schemas["PlanChance"];
export type Plan = Schemas["Plan"];
export type Cell = Schemas["Cell"];
export type Point = Schemas["Point"];
export type AgeRange = Schemas["AgeRange"];
export type CurveEffects = Schemas["CurveEffects"];
export type Curve = Schemas["Curve"];
// The dimension of a view is that of the address, which may be any text. Totals have no actions, but the table asks.
export type Results = Omit<Schemas["Results"], "dimension" | "totals"> & { dimension: string | null; totals: Counts };
export type Status = Schemas["Status"] & Partial<Pick<Schemas["ExperimentStatus"], "experimentId">>;
export type Website = Schemas["Website"];
export type WebsiteStatus = Schemas["WebsiteStatus"];
export type ResultItem = Schemas["ResultItem"];
export type Goal = Pick<Schemas["Goal"], "id" | "key" | "name">;
export type ObservedValues = Schemas["Values"];
export type Fault = Schemas["Fault"];
export type ProblemBody = Partial<Schemas["Problem"]>;
export type ShareLink = Schemas["Token"] & { expiresAt: string };
export type LogEntry = Schemas["LogEntry"];
export type Message = Schemas["Message"];
export type Sources = Schemas["Sources"];
export type Sender = Schemas["Sources"]["senders"][number];
export type Discovered = Schemas["Discovered"];
export type Prior = NonNullable<NonNullable<Schemas["Bayesian"]>["prior"]>;
export type Bin = Schemas["Distribution"]["bins"][number];
export type ProgrammeItem = Schemas["Programme"]["items"][number];
export type Delivery = Schemas["Message"]["deliveries"][number];
export type Source = Schemas["Sources"]["sources"][number];
export type EvidenceOf = Schemas["Evidence"];
export type Names = Schemas["Names"];
export type Completion = Schemas["Completion"];
export type Split = Schemas["Split"];
export type SplitItem = Split["items"][number];
export type CurvePoint = Schemas["Programme"]["curve"][number];

// Experiment is an experiment of a widget, or what a campaign or a widget has in common with it.
export type Experiment = Partial<Omit<Schemas["WidgetExperiment"], "variations">> & { id: number; active: boolean; variations?: Pictured[] };

// Pictured is a variation with its picture.
export type Pictured = Pick<Schemas["WidgetVariation"], "id" | "imageUrl">;

// Item is a campaign or a widget. The page reads from both what one of them has.
type OfBoth = "id" | "name" | "type" | "active" | "views" | "goalsReached" | "variations" | "status";
export type Item = Partial<Omit<Schemas["CampaignDetail"], OfBoth>> & Partial<Omit<Schemas["WidgetDetail"], OfBoth | keyof Schemas["CampaignDetail"]>> & {
  id: number;
  name: string;
  type: string;
  active: boolean;
  views: number;
  goalsReached: number;
  variations?: Pictured[];
  status?: Status | Status[];
};

export type MetricName = keyof typeof import("./words.js").metrics;

// Listed is a campaign or widget of the start page.
export interface Listed extends Omit<Item, "status"> {
  kind: "campaign" | "widget";
  status?: Status;
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

// Part is what a row of a table shows of a variation.
export type Part = Pick<Variation, "id" | "name" | "visitors" | "metric"> & Partial<Pick<Variation, "metrics">>;

// Segment is a variation among the visitors with one value of the dimension, or one part of a metric that is split.
export interface Segment {
  cell: { value: string; label?: string; values?: string[]; totals: Pick<Counts, "visitors"> };
  control: Part;
  variation: Part;
  comparison: Comparison;
  index: number;
}

// Order is the order of the segments.
export interface Order {
  by: "value" | "visitors" | "lift";
  down: boolean;
}

export type Scale = ReturnType<typeof import("./scale.js").scaleOf>;

/** Catalogue is the part of the catalogue that the page changes. */
export interface Catalogue { accounts: { websites?: { id?: number; campaigns?: { id?: number; key?: string; autoStop?: string }[] }[] }[] }
