// @ts-check
import { useEffect, useState } from "preact/hooks";
import { session } from "./api.js";
import { AutoStop } from "./autostop.jsx";
import { count, day } from "./format.js";
import { Fault, Loading, Num, State } from "./parts.jsx";
import { follow, to } from "./route.js";
import { Share } from "./share.jsx";
import { Switch } from "./switch.jsx";
import { kind } from "./words.js";

/** @import { ComponentChildren } from "preact" */
/** @import { Problem } from "./api.js" */
/** @import { Answer } from "./hooks.js" */
/** @import { Route } from "./route.js" */
/** @import { Go, Item, Results, Subject } from "./types.d.ts" */

/** @param {string} words */
const capital = (words) => words[0].toUpperCase() + words.slice(1);

/** Header has the name, the state and the actions of a campaign, widget or experiment.
 * @param {{ subject: Subject, detail: Answer<Item>, route: Route, go: Go, fresh: ComponentChildren, said?: Problem, scored?: Results }} props */
export function Header({ subject, detail, route, go, fresh, said, scored }) {
  const { body, error } = detail, [open, setOpen] = useState(false);
  const experiment = body?.experiments?.find((e) => String(e.id) === subject.experiment);
  const name = experiment ? experiment.name || "Experiment " + experiment.id : body?.name;
  useEffect(() => { document.title = (name ? name + " · " : "") + "Lifthouse"; }, [name]);
  const back = subject.kind === "experiment" ? to([["widget", route.get("widget")]]) : to([["websiteId", route.get("websiteId") || undefined]]);
  const listed = !session.shared; // a share link has no other pages
  if (!body) return <header class="subject">{listed && <p><a {...follow(go, back)}>← Back</a></p>}<h1>{capital(subject.kind)} {subject.experiment ?? route.get(subject.kind)}</h1>{error ? !said && <Fault error={error} again={detail.again} /> : <Loading what="details" />}</header>;
  const shown = experiment || body;
  return (
    <header class="subject">
      {listed && <p><a {...follow(go, back)}>← {subject.kind === "experiment" ? body.name : "Overview"}</a></p>}
      <div class="title"><h1>{name}</h1><State {...shown} />
        {listed && <button type="button" class="fold" aria-expanded={open} aria-label="Actions" onClick={() => setOpen(!open)}>⋯</button>}
        <span class={"actions" + (open ? " open" : "")}>{!experiment && <Switch {...{ subject, body, scored }} done={detail.again} />}{subject.kind === "campaign" && <AutoStop body={body} website={route.get("websiteId")} done={detail.again} />}<Share {...{ subject, body }} title={name ?? ""} /></span></div>
      {!experiment && body.hypothesis && <p class="hypothesis">{body.hypothesis}</p>}
      <p class="quiet facts">{!experiment && body.owner && <>Owner: {body.owner} · </>}{!experiment && body.tags?.map((tag) => <span key={tag} class="flag plain">#{tag}</span>)}{experiment ? "Experiment" : capital(kind(body.type))} {experiment ? experiment.id : body.key ?? body.id}{experiment && <> of the widget {body.name}</>}{shown.startDate && <> · since {day(shown.startDate)}</>}{shown.endDate && <> · until {day(shown.endDate)}</>}
        {!experiment && <> · <Num value={body.views}>{count(body.views)}</Num> views and <Num value={body.goalsReached}>{count(body.goalsReached)}</Num> goals in total</>}{fresh}</p>
    </header>
  );
}
