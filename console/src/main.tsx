import "./mantine.css";
import "./console.css";
import { MantineProvider } from "@mantine/core";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ServerProvider } from "./api/server.tsx";
import { router } from "./router.tsx";
import { theme } from "./theme.ts";

/** The nonce of the page's content security policy, which style elements need. */
const nonce = document.querySelector<HTMLMetaElement>("meta[property='csp-nonce']")?.nonce ?? "";
// Packages that create style elements look it up by this name.
Object.assign(globalThis, { __webpack_nonce__: nonce });

const root = document.getElementById("root");
if (!root) throw new Error("the page has no root");
createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
      <ServerProvider>
        <RouterProvider router={router} />
      </ServerProvider>
    </MantineProvider>
  </StrictMode>,
);
