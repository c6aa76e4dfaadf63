// The modules that the page shares with the code that it loads later. The page and each module that is loaded later
// import this one, so all of them share the same modules, and the build puts these into one file, chunk.js.
import "./api.js";
import "./conditions.js";
import "./evidence.jsx";
import "./forest.jsx";
import "./format.js";
import "./help.jsx";
import "./hooks.js";
import "./later.jsx";
import "./measure.js";
import "./parts.jsx";
import "./period.jsx";
import "./points.js";
import "./rows.jsx";
import "./route.js";
import "./scale.js";
import "./span.js";
import "./table.jsx";
import "./words.js";
