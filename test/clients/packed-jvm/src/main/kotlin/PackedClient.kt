import chartroom.client.Chartroom
import chartroom.client.Failure
import chartroom.client.Lists
import chartroom.service.v1.CreateProjectRequest
import chartroom.service.v1.EnvironmentInitializer
import chartroom.service.v1.GetProjectRequest
import chartroom.service.v1.GitInitializer
import chartroom.service.v1.ListProjectsRequest
import chartroom.service.v1.ListProjectsResponse
import chartroom.service.v1.PaginationRequest
import chartroom.service.v1.Project
import chartroom.service.v1.Sort
import chartroom.service.v1.WatchEventsRequest
import com.google.gson.Gson
import io.grpc.StatusRuntimeException

/**
 * Runs one scenario with the packed module: PackedClientKt ADDRESS SCENARIO. Prints one JSON object; the token is in the
 * environment variable TOKEN.
 */
fun main(args: Array<String>) {
    Chartroom.connect(args[0], System.getenv("TOKEN")).use { client ->
        val result =
            when (args[1]) {
                "list" -> walk(client)
                "error" -> fail(client)
                "lost" -> mapOf("id" to create(client, "lost").id)
                "stream" -> watch(client)
                else -> error("no scenario ${args[1]}")
            }
        println(Gson().toJson(result))
    }
}

private fun create(client: Chartroom, name: String): Project {
    val git = GitInitializer.newBuilder().setRemoteUri("https://git.example.org/team/$name.git")
    val spec = EnvironmentInitializer.Spec.newBuilder().setGit(git)
    val initializer = EnvironmentInitializer.newBuilder().addSpecs(spec)
    return client.project().createProject(CreateProjectRequest.newBuilder().setInitializer(initializer).build()).project
}

/** Walks five projects, by pages and one by one. */
private fun walk(client: Chartroom): Any {
    repeat(5) { create(client, "listed-$it") }
    val request =
        ListProjectsRequest.newBuilder()
            .setFilter(ListProjectsRequest.Filter.newBuilder().setSearch("listed-"))
            .setSort(Sort.newBuilder().setField("id"))
            .setPagination(PaginationRequest.newBuilder().setPageSize(2))
            .build()
    val projects = client.project()
    val pages = Lists.pages(projects::listProjects, request).map { it.projectsCount }
    val names =
        Lists.items(projects::listProjects, request, ListProjectsResponse::getProjectsList).map { it.metadata.name }
    return mapOf("pages" to pages, "names" to names)
}

private fun fail(client: Chartroom): Any {
    try {
        client.project().getProject(GetProjectRequest.newBuilder().setProjectId("x").build())
    } catch (error: StatusRuntimeException) {
        val failure = Failure.of(error)
        return mapOf(
            "code" to failure.code.name,
            "reason" to failure.reason.name,
            "metadata" to failure.metadata,
            "violations" to failure.violations,
        )
    }
    error("the server took a bad id")
}

/** Watches; the connection is cut in between, of which the program sees nothing. */
private fun watch(client: Chartroom): Any {
    val seen = mutableListOf<Map<String, Any>>()
    client.watchEvents(WatchEventsRequest.newBuilder().setAfterSequence(0).build()).use { events ->
        fun readUntil(resourceId: String) {
            for (event in events) {
                seen.add(mapOf("sequence" to event.sequence, "resourceId" to event.resourceId))
                if (event.resourceId == resourceId) return
            }
        }
        val first = create(client, "first").id
        readUntil(first)
        println("watching")
        readln()
        val second = create(client, "second").id
        readUntil(second)
        return mapOf("events" to seen, "projects" to listOf(first, second))
    }
}
