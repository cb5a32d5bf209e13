import { useInfiniteQuery } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import { useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { keepPreviousData } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../api/pages.ts";
import { Who } from "../../api/person.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { Dialog } from "../../parts/Dialog.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Page } from "../../parts/Page.tsx";
import { SearchField } from "../../parts/SearchField.tsx";
import { Ago } from "../../parts/Time.tsx";
import { CreateProject } from "./CreateProject.tsx";
import { ImportProjects } from "./ImportProjects.tsx";
import { ProjectFilters } from "./ProjectFilters.tsx";
import { countFilters, requestOf } from "./project-filters.ts";
import { sourceOf } from "./source.ts";

/** Milliseconds without a key press before a search starts. */
const TYPED_MS = 200;

/** Lists the projects of the organization, with a search while typing. Search, filters and order are in the address. */
export function Projects() {
  const address = useSearch({ from: "/projects" });
  const { q = "" } = address;
  const navigate = useNavigate();
  const [isOpen, dialog] = useDisclosure();
  const [isImporting, imports] = useDisclosure();
  const [search] = useDebouncedValue(q, TYPED_MS);
  const { filter, sort } = requestOf(address);
  const projects = useInfiniteQuery(
    ProjectService.method.listProjects,
    { ...FIRST_PAGE, sort, filter: { ...filter, search }, count: { include: true } },
    { ...BY_PAGE, placeholderData: keepPreviousData },
  );
  return (
    <Page
      title="Projects"
      actions={
        <>
          <Button size="xs" leftSection={<Icon name="plus" size={14} />} onClick={dialog.open}>
            Create project
          </Button>
          <Button size="xs" variant="default" onClick={imports.open}>
            Import projects
          </Button>
        </>
      }
    >
      <SearchField
        label="Search projects"
        placeholder="Search names and repositories"
        className="search"
        value={q}
        onType={(typed) =>
          void navigate({ to: "/projects", search: (before) => ({ ...before, q: typed }), replace: true })
        }
      />
      <ProjectFilters />
      <Loaded reading={projects}>
        {({ pages }) => {
          const rows = pages.flatMap(({ projects }) => projects);
          if (rows.length === 0) {
            if (countFilters(address) > 0) return <Empty title="No project matches. Remove a filter." />;
            return q === "" ? (
              <Empty title="There are no projects yet.">
                <p>A project defines how environments start: from which repository and on which machines.</p>
              </Empty>
            ) : (
              <Empty title={`No project has “${q}” in its name or its repository.`} />
            );
          }
          return (
            <>
              <p className="dim small figures" role="status">
                {(pages[0]?.count?.value ?? rows.length).toLocaleString()}{" "}
                {pages[0]?.count?.value === 1 ? "project" : "projects"}
              </p>
              <DataTable
                label="Projects"
                rows={rows}
                keyOf={({ id }) => id}
                {...moreOf(projects)}
                columns={[
                  {
                    head: "Name",
                    cell: ({ id, metadata }) => (
                      <Link className="row-link" to="/projects/$projectId" params={{ projectId: id }}>
                        {metadata?.name}
                      </Link>
                    ),
                  },
                  { head: "From", cell: (project) => <code className="anywhere">{sourceOf(project)}</code> },
                  {
                    head: "Created by",
                    cell: ({ metadata }) => <Who subject={metadata?.creator} />,
                    isExtra: true,
                  },
                  {
                    head: "Changed",
                    cell: ({ metadata }) => <Ago at={metadata?.updatedAt} />,
                    isExtra: true,
                  },
                ]}
              />
            </>
          );
        }}
      </Loaded>
      {isOpen && (
        <Dialog title="Create project" onClose={dialog.close}>
          <CreateProject onClose={dialog.close} />
        </Dialog>
      )}
      {isImporting && (
        <Dialog title="Import projects" size={640} onClose={imports.close}>
          <ImportProjects onClose={imports.close} />
        </Dialog>
      )}
    </Page>
  );
}
