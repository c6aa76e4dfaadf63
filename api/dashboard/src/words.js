export const metrics = {
  goalConversionRate: "Goal conversion rate",
  conversionRate: "Conversion rate",
  completionRate: "Completion rate",
  goalsPerVisitor: "Goals per visitor",
  valuePerVisitor: "Value per visitor",
  profitPerVisitor: "Profit per visitor",
  extraValuePerVisitor: "Extra value per visitor",
  averageValue: "Average value",
};

export const compareMetrics = {
  campaign: ["goalConversionRate", "valuePerVisitor", "profitPerVisitor"],
  experiment: ["conversionRate", "completionRate", "goalConversionRate", "valuePerVisitor", "profitPerVisitor", "extraValuePerVisitor"],
  widget: [],
};

export const verdicts = {
  better: ["▲", "better"],
  worse: ["▼", "worse"],
  ahead: ["△", "ahead, not conclusive"],
  behind: ["▽", "behind, not conclusive"],
  inconclusive: ["◆", "inconclusive"],
  insufficientData: ["…", "not enough data"],
};

// inconclusive is how verdicts read that no conclusion may be drawn from yet.
export const inconclusive = { better: "ahead", worse: "behind" };

export const conclusions = {
  winner: "Winner",
  loser: "Loser",
  inconclusive: "No decision yet",
  insufficientData: "Not enough data",
  invalid: "Cannot be trusted",
};

const reasons = {
  NO_VISITORS: "there are no visitors",
  TOO_FEW_VISITORS: "there are too few visitors (a verdict needs 100 in each variation)",
  TOO_FEW_CONVERSIONS: "too few visitors converted, or too few did not",
  TOO_FEW_NONZERO: "too few visitors have a value other than 0 (a verdict needs 20 in each variation)",
  TOO_FEW_VARIATIONS: "fewer than two variations have a share",
  ZERO_VARIANCE: "all values are equal, so that their spread says nothing",
  BASELINE_ZERO: "control stands at 0, of which nothing is a percentage",
  BASELINE_NOT_DISTINGUISHABLE_FROM_ZERO: "control cannot be told from 0, so that the lift over it has no bound",
  LEVEL_100: "at significance level 100 nothing is ever significant and there are no intervals",
  UNBALANCED_SKEW: "an effect shows, but the variations are so uneven in size that skewed values could feign it",
  SHARES_CHANGED: "the shares changed meanwhile, so that the variations' visitors differ in more than the variation",
  TOO_EARLY: "it is too early, as whoever looks often sees an effect by chance",
  LIFT_IMPOSSIBLE: "a rate lifted so far would exceed 100 %",
  SAMPLE_RATIO_MISMATCH: "visitors did not fall on the variations as their shares say",
  NOT_SIGNIFICANT_ACROSS_BREAKDOWN: "among so many cells of the breakdown chance alone shows such an effect",
  NO_TRAFFIC: "control, or every other variation, gets no traffic",
  INVALID_DATA: "the numbers are beyond what can be computed",
  NOT_SIGNIFICANT: "no variation differs by more than chance explains",
  NOTHING_TO_COMPARE: "there is no second variation",
  NO_SPREAD: "the values do not spread",
};

export const why = (...codes) => codes.filter(Boolean).map((code) => reasons[code] || code).join("; ");

export const filters = {
  device: "Device", browser: "Browser", os: "Operating system", country: "Country", region: "Region", city: "City",
  utmSource: "UTM source", utmMedium: "UTM medium", utmCampaign: "UTM campaign", utmContent: "UTM content", utmTerm: "UTM term",
  referrer: "Referrer", firstVisitPage: "First page", visitorType: "Visitor (new or returning)",
  goalValue: "Goal value at least", zScore: "Standard deviations at most",
};

// listed filters take several values.
export const listed = ["device", "browser", "os", "country", "region", "city"];
export const numeric = ["goalValue", "zScore"];

export const campaignTypes = { personalization: "personalization", experiment: "experiment" };
export const kind = (type) => type.replace(/([A-Z])/g, " $1").toLowerCase();
