import { useInfiniteQuery } from "@connectrpc/connect-query";
import { Button, Modal, TextInput } from "@mantine/core";
import { useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { keepPreviousData } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { Who } from "../../api/person.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { Dialog } from "../../parts/Dialog.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Page } from "../../parts/Page.tsx";
import { Ago } from "../../parts/Time.tsx";
import { CreateProject } from "./CreateProject.tsx";
import { ImportProjects } from "./ImportProjects.tsx";
import { sourceOf } from "./source.ts";

const PAGE = 50;

/** Milliseconds without a key until a search begins. */
const TYPED_MS = 200;

/** The projects of the organization, searched as one types; the search is part of the address. */
export function Projects() {
  const { q = "" } = useSearch({ from: "/projects" });
  const navigate = useNavigate();
  const [isOpen, dialog] = useDisclosure();
  const [isImporting, imports] = useDisclosure();
  const [search] = useDebouncedValue(q, TYPED_MS);
  const projects = useInfiniteQuery(
    ProjectService.method.listProjects,
    { filter: { search }, count: { include: true }, pagination: { pageSize: PAGE } },
    {
      pageParamKey: "pagination",
      placeholderData: keepPreviousData,
      getNextPageParam: ({ pagination }) =>
        pagination?.nextToken ? { pageSize: PAGE, token: pagination.nextToken } : undefined,
    },
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
      <TextInput
        type="search"
        aria-label="Search projects"
        placeholder="Search names and repositories"
        leftSection={<Icon name="search" size={14} />}
        className="search"
        value={q}
        maxLength={256}
        onChange={(event) =>
          void navigate({
            to: "/projects",
            search: { q: event.currentTarget.value || undefined },
            replace: true,
          })
        }
      />
      <Loaded reading={projects}>
        {({ pages }) => {
          const rows = pages.flatMap(({ projects }) => projects);
          if (rows.length === 0) {
            return q === "" ? (
              <Empty title="There is no project yet.">
                <p>A project says how environments start: from which repository, and on which machines.</p>
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
                onMore={projects.hasNextPage ? () => void projects.fetchNextPage() : undefined}
                isLoadingMore={projects.isFetchingNextPage}
                columns={[
                  {
                    head: "Name",
                    cell: ({ id, metadata }) => (
                      <Link className="row-link" to="/projects/$projectId" params={{ projectId: id }}>
                        {metadata?.name}
                      </Link>
                    ),
                  },
                  { head: "From", cell: (project) => <code>{sourceOf(project)}</code> },
                  {
                    head: "Made by",
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
      <Modal
        opened={isOpen}
        onClose={dialog.close}
        title="Create project"
        transitionProps={{ duration: 120 }}
        closeButtonProps={{ "aria-label": "Close" }}
      >
        {isOpen && <CreateProject onClose={dialog.close} />}
      </Modal>
      {isImporting && (
        <Dialog title="Import projects" size={640} onClose={imports.close}>
          <ImportProjects onClose={imports.close} />
        </Dialog>
      )}
    </Page>
  );
}
