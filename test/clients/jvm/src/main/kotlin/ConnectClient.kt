import build.buf.validate.Violations
import chartroom.service.v1.CreateProjectRequest
import chartroom.service.v1.CreateWorkflowRequest
import chartroom.service.v1.EnvironmentInitializer
import chartroom.service.v1.ErrorDetail
import chartroom.service.v1.EventServiceClient
import chartroom.service.v1.GetProjectRequest
import chartroom.service.v1.GitInitializer
import chartroom.service.v1.ListProjectsRequest
import chartroom.service.v1.PaginationRequest
import chartroom.service.v1.Project
import chartroom.service.v1.ProjectServiceClient
import chartroom.service.v1.Sort
import chartroom.service.v1.WatchEventsRequest
import chartroom.service.v1.WatchEventsResponse
import chartroom.service.v1.WorkflowAction
import chartroom.service.v1.WorkflowServiceClient
import chartroom.service.v1.WorkflowStep
import com.connectrpc.ConnectException
import com.connectrpc.ProtocolClientConfig
import com.connectrpc.RequestCompression
import com.connectrpc.ServerOnlyStreamInterface
import com.connectrpc.compression.GzipCompressionPool
import com.connectrpc.extensions.GoogleJavaProtobufStrategy
import com.connectrpc.getOrThrow
import com.connectrpc.impl.ProtocolClient
import com.connectrpc.okhttp.ConnectOkHttpClient
import com.google.gson.Gson
import java.util.concurrent.TimeUnit
import kotlin.system.exitProcess
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlinx.coroutines.runBlocking
import okhttp3.OkHttpClient

/**
 * Runs one scenario against a server with connect-kotlin: `ConnectClientKt ADDRESS SCENARIO`.
 * Prints one JSON object; the token is in the environment variable TOKEN.
 */
fun main(args: Array<String>): Unit = runBlocking {
    val client = ConnectClient(args[0])
    val result = when (args[1]) {
        "create" -> mapOf("name" to client.create("created").metadata.name)
        "list" -> client.list()
        "error" -> client.refused()
        "stream" -> client.stream()
        "deadline" -> client.deadline()
        "compression" -> client.compression()
        "unknown" -> client.unknown()
        else -> error("no scenario ${args[1]}")
    }
    println(Gson().toJson(result))
    exitProcess(0)
}

/** Sends compressed requests over the Connect protocol. */
class ConnectClient(private val address: String) {
    private val headers = mapOf("Authorization" to listOf("Bearer ${System.getenv("TOKEN")}"))
    private val patient = protocolClient(1.minutes)
    private val projects = ProjectServiceClient(patient)
    private val workflows = WorkflowServiceClient(patient)
    private val events = EventServiceClient(patient)

    /** Makes a client whose calls have this deadline; OkHttp's own limit on silence is off. */
    private fun protocolClient(deadline: Duration) = ProtocolClient(
        ConnectOkHttpClient(OkHttpClient.Builder().readTimeout(0, TimeUnit.SECONDS).build()),
        ProtocolClientConfig(
            host = address,
            serializationStrategy = GoogleJavaProtobufStrategy(),
            requestCompression = RequestCompression(1_024, GzipCompressionPool),
            compressionPools = listOf(GzipCompressionPool),
            timeoutOracle = { deadline },
        ),
    )

    suspend fun create(name: String): Project {
        val git = GitInitializer.newBuilder().setRemoteUri("https://git.example.org/team/$name.git")
        val spec = EnvironmentInitializer.Spec.newBuilder().setGit(git)
        val request = CreateProjectRequest.newBuilder()
            .setInitializer(EnvironmentInitializer.newBuilder().addSpecs(spec))
            .build()
        return projects.createProject(request, headers).getOrThrow().project
    }

    /** Walks five projects in pages of two. */
    suspend fun list(): Any {
        repeat(5) { create("listed-$it") }
        val pages = mutableListOf<List<String>>()
        var token = ""
        do {
            val request = ListProjectsRequest.newBuilder()
                .setFilter(ListProjectsRequest.Filter.newBuilder().setSearch("listed-"))
                .setSort(Sort.newBuilder().setField("id"))
                .setPagination(PaginationRequest.newBuilder().setPageSize(2).setToken(token))
                .build()
            val answer = projects.listProjects(request, headers).getOrThrow()
            pages += answer.projectsList.map { it.metadata.name }
            token = answer.pagination.nextToken
        } while (token != "")
        return mapOf("pages" to pages)
    }

    /** Reads the code, the reason and the violations from an error. */
    suspend fun refused(): Any {
        try {
            projects.getProject(GetProjectRequest.newBuilder().setProjectId("x").build(), headers).getOrThrow()
        } catch (error: ConnectException) {
            val detail = error.unpackedDetails(ErrorDetail::class).single()
            val violations = error.unpackedDetails(Violations::class).flatMap { it.violationsList }
            return mapOf(
                "code" to error.code.codeName,
                "reason" to detail.reason.name,
                "violations" to violations.map { violation ->
                    val names = violation.field.elementsList.map { it.fieldName }
                    mapOf("field" to names.joinToString("."), "rule" to violation.ruleId)
                },
            )
        }
        error("the server took a bad id")
    }

    private suspend fun watch(
        client: EventServiceClient,
        request: WatchEventsRequest,
    ): ServerOnlyStreamInterface<WatchEventsRequest, WatchEventsResponse> {
        val stream = client.watchEvents(headers)
        stream.sendAndClose(request).getOrThrow()
        return stream
    }

    /** Watches until the connection is cut, and resumes after the last event that it has. */
    suspend fun stream(): Any {
        val seen = mutableListOf<Map<String, Any>>()
        fun record(event: WatchEventsResponse): String {
            seen += mapOf("sequence" to event.sequence, "resourceId" to event.resourceId)
            return event.resourceId
        }
        val first = create("first").id
        val opened = watch(events, WatchEventsRequest.newBuilder().setAfterSequence(0).build())
        val messages = opened.responseChannel().iterator()
        while (messages.hasNext()) if (record(messages.next()) == first) break
        println("watching")
        var cut = "closed without an error"
        try {
            while (messages.hasNext()) record(messages.next())
        } catch (error: ConnectException) {
            cut = error.code.codeName
        }
        val second = create("second").id
        val position = seen.last().getValue("sequence") as Long
        val resumed = watch(events, WatchEventsRequest.newBuilder().setAfterSequence(position).build())
        for (event in resumed.responseChannel()) if (record(event) == second) break
        return mapOf("cut" to cut, "events" to seen, "projects" to listOf(first, second))
    }

    /** Waits for events of the future for a moment only. */
    suspend fun deadline(): Any {
        try {
            val impatient = EventServiceClient(protocolClient(500.milliseconds))
            val stream = watch(impatient, WatchEventsRequest.getDefaultInstance())
            for (event in stream.responseChannel()) continue
        } catch (error: ConnectException) {
            return mapOf("code" to error.code.codeName)
        }
        error("the stream ended without an error")
    }

    /** Sends and receives a workflow of 100,000 equal characters. */
    suspend fun compression(): Any {
        val action = WorkflowAction.newBuilder()
            .setLimits(WorkflowAction.Limits.newBuilder().setMaxParallel(1).setMaxTotal(1))
        repeat(5) {
            val task = WorkflowStep.Task.newBuilder().setCommand("a".repeat(20_000))
            action.addSteps(WorkflowStep.newBuilder().setTask(task))
        }
        val request = CreateWorkflowRequest.newBuilder().setName("Compressed").setAction(action).build()
        val steps = workflows.createWorkflow(request, headers).getOrThrow().workflow.spec.action.stepsList
        return mapOf("characters" to steps.sumOf { it.task.command.length })
    }

    /** Reads an answer with a field that this client's contract does not have. */
    suspend fun unknown(): Any {
        val metadata = create("older").metadata
        return mapOf("name" to metadata.name, "unknownFields" to metadata.unknownFields.asMap().isNotEmpty())
    }
}
