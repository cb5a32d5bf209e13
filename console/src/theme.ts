import { createTheme } from "@mantine/core";

/** The look of Mantine's components: system fonts, 14 px, and one blue. */
export const theme = createTheme({
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace",
  fontSizes: { xs: "12px", sm: "14px", md: "14px", lg: "18px", xl: "18px" },
  primaryColor: "blue",
  primaryShade: { light: 8, dark: 8 },
  defaultRadius: "sm",
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    Menu: {
      defaultProps: {
        position: "bottom-end",
        shadow: "md",
        transitionProps: { duration: 120 },
        // Focuses the first item instead of a placeholder element.
        withInitialFocusPlaceholder: false,
      },
    },
  },
  headings: { fontWeight: "600", sizes: { h1: { fontSize: "18px" }, h2: { fontSize: "14px" } } },
});
