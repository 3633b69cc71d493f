// commands.tsx: what a person may do, each after one more question. The router decides who may; a button that it would refuse is not offered.

import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import type { Model } from "./model";
import type { Phase, Rollout, Status } from "./types";
import { isOver } from "./types";

interface Command {
  verb: api.Verb;
  name: string;
  phases: Phase[];
  danger: boolean;
  means: (rollout: Rollout) => string;
}

const kCommands: Command[] = [
  {
    verb: "pause",
    name: "Pause",
    phases: ["Progressing"],
    danger: false,
    means: (r) => `The canary keeps ${r.weight} % of the traffic until somebody resumes. Guards go on judging it.`,
  },
  {
    verb: "resume",
    name: "Resume",
    phases: ["Paused", "Inconclusive"],
    danger: false,
    means: (r) => `The steps go on from step ${r.step + 1} of ${r.steps}, also past a manual gate.`,
  },
  {
    verb: "promote",
    name: "Promote",
    phases: ["Progressing", "Paused", "Inconclusive"],
    danger: true,
    means: (r) => `All traffic goes to version ${r.canary} now. No further evidence is asked for.`,
  },
  {
    verb: "abort",
    name: "Abort",
    phases: ["Progressing", "Paused", "Inconclusive", "Promoting", "Baking"],
    danger: true,
    means: (r) => `All traffic goes to version ${r.stable}, from the next request on.`,
  },
];

function Confirm({ command, status, rollout, close }: { command: Command; status: Status; rollout: Rollout; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [seen] = useState(status.epoch); // what the question was asked about
  const [reason, setReason] = useState("");
  const [refusal, setRefusal] = useState("");
  const [sending, setSending] = useState(false);
  useEffect(() => dialog.current?.showModal(), []);
  const send = async (): Promise<void> => {
    setSending(true);
    setRefusal("");
    try {
      await api.command(status.service, command.verb, seen, reason.trim());
      dialog.current?.close();
    } catch (error) {
      setRefusal(error instanceof Error ? error.message : String(error));
      setSending(false);
    }
  };
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="question">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <h2 id="question">
          {command.name} {rollout.id}?
        </h2>
        <p>{command.means(rollout)}</p>
        <label for="reason">Reason, for the audit log</label>
        <input id="reason" maxLength={1000} autocomplete="off" value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
        {refusal !== "" && (
          <p class="refusal" role="alert">
            {refusal}
          </p>
        )}
        <div class="choices">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class={command.danger ? "danger" : "primary"} disabled={sending}>
            {command.name}
          </button>
        </div>
      </form>
    </dialog>
  );
}

export function Commands({ model, status, rollout }: { model: Model; status: Status; rollout: Rollout }) {
  const [asked, setAsked] = useState<Command | null>(null);
  if (isOver(rollout.phase)) return null;
  const why = (command: Command): string => {
    if (model.connection !== "live") return "not connected";
    if (!model.may(command.verb)) return `the role ${model.caller?.role ?? "of nobody"} may not ${command.verb}`;
    return command.phases.includes(rollout.phase) ? "" : `not while ${rollout.phase}`;
  };
  return (
    <div class="commands">
      {kCommands.map((command) => (
        <button
          key={command.verb}
          type="button"
          class={command.verb === "abort" ? "danger" : ""}
          disabled={why(command) !== ""}
          title={why(command)}
          onClick={() => setAsked(command)}
        >
          {command.name}
        </button>
      ))}
      {asked && <Confirm command={asked} status={status} rollout={rollout} close={() => setAsked(null)} />}
    </div>
  );
}
