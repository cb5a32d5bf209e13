import { Page } from "../parts/Page.tsx";
import { RunnersSection } from "./home/RunnersSection.tsx";

/** What waits for the person, what runs now, and how the runners are. */
export function Home() {
  return (
    <Page title="Home">
      <RunnersSection />
    </Page>
  );
}
