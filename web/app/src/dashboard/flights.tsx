import { useEffect, useState } from "preact/hooks";
import type { Client } from "../shared/client";
import { AirportPanel } from "./airport";
import { useLive } from "./live";
import { rankingQuery, type Ranking } from "./queries";
import { RankingPanel, rankingSize } from "./ranking";
import { rangeOf } from "./series";

interface Props {
  client: Client;
  connected: boolean;
  streamTime: number;
}

/** The panels of the departures: their ranking and the airport chosen of it. */
export function Flights({ client, connected, streamTime }: Props) {
  const [place, go] = usePlace();
  const ranking = useLive<Ranking | null>(client, "ranking", { query: rankingQuery, variables: { first: rankingSize } });
  const rows = ranking.data?.rows;

  // Without a choice the first of the ranking is chosen, and then kept.
  const first = rows?.[0]?.origin;
  useEffect(() => {
    if (!place.origin && first) go({ ...place, origin: first });
  }, [place.origin, first]);

  return (
    <>
      <RankingPanel live={ranking} connected={connected} selected={place.origin} select={(origin) => go({ ...place, origin })} />
      <AirportPanel
        client={client}
        connected={connected}
        origin={place.origin}
        hint={rows?.find((r) => r.origin === place.origin)?.airport}
        range={place.range}
        setRange={(range) => go({ ...place, range })}
        streamTime={streamTime}
      />
    </>
  );
}

interface Place {
  origin: string;
  range: string;
}

/** What is shown, as the address says after its #: "#DFW/30d". */
function usePlace(): [Place, (place: Place) => void] {
  const [place, setPlace] = useState<Place>(readPlace);
  useEffect(() => {
    const follow = () => setPlace(readPlace());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  const go = (to: Place) => {
    history.replaceState(null, "", `#${encodeURIComponent(to.origin)}/${to.range}`);
    setPlace(to);
  };
  return [place, go];
}

function readPlace(): Place {
  const [origin = "", range = ""] = location.hash.slice(1).split("/");
  try {
    return { origin: decodeURIComponent(origin), range: rangeOf(range).id };
  } catch {
    return { origin: "", range: rangeOf(range).id };
  }
}
